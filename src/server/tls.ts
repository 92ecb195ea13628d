/** TLS 1.3 of the server itself: hybrid key agreement, and certificates that can be renewed while it runs. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { createSecureContext, type SecureContextOptions } from "node:tls";
import type { Logger } from "pino";

/** Where a certificate chain and its key are, in PEM. */
export interface TlsFiles {
  readonly certificate: string;
  readonly key: string;
}

/** Says what is wrong with a certificate or its key, in a sentence. */
export class TlsError extends Error {}

/**
 * What every connection agrees on. The groups stand in the order in which they are preferred: the hybrid of ML-KEM-768
 * and X25519 (draft-ietf-tls-ecdhe-mlkem), then X25519, then P-384. With ":" between them OpenSSL would take any for
 * which the client sent a share already; "/" makes it ask for the better one (HelloRetryRequest).
 */
const protocol = {
  minVersion: "TLSv1.3",
  ecdhCurve: "X25519MLKEM768/X25519/P-384",
} as const satisfies SecureContextOptions;

/** Milliseconds between looks whether a certificate was renewed. */
const pollIntervalMs = 1000;

/** Certificates, as node:tls takes them: of several kinds, each client gets the one that it prefers. */
export type TlsOptions = typeof protocol & {
  readonly cert: readonly Buffer[];
  readonly key: readonly Buffer[];
};

/** Reads certificates and keys. @throws TlsError naming the file at fault */
export function readTlsOptions(pairs: readonly TlsFiles[]): TlsOptions {
  const read = pairs.map(({ certificate, key }) => {
    const pair = { cert: readPem(certificate), key: readPem(key) };
    checkPair(pair, certificate, key);
    return pair;
  });
  const options = { ...protocol, cert: read.map(({ cert }) => cert), key: read.map(({ key }) => key) };
  try {
    createSecureContext({ ...options, cert: [...options.cert], key: [...options.key] });
  } catch (error) {
    const files = pairs.map(({ certificate }) => certificate).join(", ");
    throw new TlsError(`${files} cannot be used: ${error instanceof Error ? error.message : error}`);
  }
  return options;
}

function readPem(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new TlsError(`${path} cannot be read: ${error instanceof Error ? error.message : error}`);
  }
}

function checkPair({ cert, key }: { cert: Buffer; key: Buffer }, certificate: string, keyFile: string): void {
  const parsed = attempt(() => new X509Certificate(cert));
  if (parsed === undefined) throw new TlsError(`${certificate} holds no certificate in PEM`);
  const secretKey = attempt(() => createPrivateKey(key));
  if (secretKey === undefined)
    throw new TlsError(`${keyFile} holds no private key in PEM that is not encrypted`);
  if (!parsed.checkPrivateKey(secretKey)) throw new TlsError(`${keyFile} is not the key of ${certificate}`);
}

function attempt<T>(make: () => T): T | undefined {
  try {
    return make();
  } catch {
    return undefined;
  }
}

/**
 * Looks once a second whether files were replaced, and hands over what they hold then. While a pair does not fit, as
 * between the renaming of its two files, what was there before stays in use.
 *
 * @returns stops it
 */
export function watchTls(
  pairs: readonly TlsFiles[],
  apply: (options: TlsOptions) => void,
  logger: Logger,
): () => void {
  const paths = pairs.flatMap(({ certificate, key }) => [certificate, key]);
  let seen = describeFiles(paths);
  let complained = "";
  const look = (): void => {
    const found = describeFiles(paths);
    if (found === seen) return;
    try {
      apply(readTlsOptions(pairs));
      seen = found;
      logger.info({ files: paths }, "new certificates are in use");
    } catch (error) {
      // Said once for each state of the files: the next look may find them whole.
      if (complained !== found) logger.warn({ err: error }, "new certificates are not used");
      complained = found;
    }
  };
  const timer = setInterval(look, pollIntervalMs).unref();
  return () => clearInterval(timer);
}

/** Tells files from others that take their places. */
function describeFiles(paths: readonly string[]): string {
  return paths
    .map((path) => {
      const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
      return stat === undefined ? "none" : `${stat.ino} ${stat.size} ${stat.mtimeNs}`;
    })
    .join(",");
}
