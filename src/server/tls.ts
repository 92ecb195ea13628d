/** The server's own TLS 1.3: hybrid key agreement, and certificates that can be renewed while it runs. */
import { statSync } from "node:fs";
import { createSecureContext, type SecureContextOptions } from "node:tls";
import type { Logger } from "pino";
import { readCertificates, readPrivateKey } from "../crypto/certificate-files.ts";
import { CryptoError } from "../crypto/crypto-error.ts";
import { maxSmallFileBytes, readFileWithin } from "../read-file.ts";
import { describeSystemError } from "../system-error.ts";

/** The PEM files of a certificate chain and its key. */
export interface TlsFiles {
  readonly certificate: string;
  readonly key: string;
}

/** Says in one sentence what is wrong with a certificate or its key. */
export class TlsError extends Error {}

/**
 * The parameters of every connection. The groups are in order of preference: the hybrid of ML-KEM-768 and
 * X25519 (RFC 10024), X25519, P-384, and P-256, the only group of gRPC for C++ and Python before 1.83. With ":"
 * between the groups, OpenSSL would accept any group for which the client has already sent a share. "/" makes
 * it request the better one (HelloRetryRequest).
 */
const protocol = {
  minVersion: "TLSv1.3",
  ecdhCurve: "X25519MLKEM768/X25519/P-384/P-256",
} as const satisfies SecureContextOptions;

/** Milliseconds between polls for a renewed certificate. */
const pollIntervalMs = 1000;

const dayMs = 24 * 60 * 60 * 1000;
/** Days before a certificate expires when the log starts to warn. */
const noticeDays = 14;

/** Certificates in node:tls form. If there are several kinds, each client gets the one that it prefers. */
export type TlsOptions = typeof protocol & {
  readonly cert: readonly Buffer[];
  readonly key: readonly Buffer[];
};

/**
 * Reads certificates and keys.
 *
 * @throws TlsError naming the invalid file
 */
export function readTlsOptions(pairs: readonly TlsFiles[]): TlsOptions {
  const read = pairs.map(readPair);
  const options = { ...protocol, cert: read.map(({ cert }) => cert), key: read.map(({ key }) => key) };
  try {
    createSecureContext({ ...options, cert: [...options.cert], key: [...options.key] });
  } catch (error) {
    const files = pairs.map(({ certificate }) => certificate).join(", ");
    throw new TlsError(`${files} cannot be used: ${error instanceof Error ? error.message : error}`);
  }
  return options;
}

/**
 * Reads a pair. OpenSSL gets the contents that this program has checked, not the files: it would skip a
 * damaged PEM block.
 */
function readPair({ certificate, key }: TlsFiles): { cert: Buffer; key: Buffer } {
  const chain = explain(certificate, () => readCertificates(readText(certificate)));
  const secretKey = explain(key, () => readPrivateKey(readText(key)));
  if (!chain[0].checkPrivateKey(secretKey))
    throw new TlsError(`${key} does not contain the key of ${certificate}`);
  return {
    cert: Buffer.from(chain.join("")),
    key: Buffer.from(secretKey.export({ type: "pkcs8", format: "pem" })),
  };
}

function readText(path: string): string {
  try {
    return readFileWithin(path, maxSmallFileBytes).toString();
  } catch (error) {
    throw new TlsError(`${path} cannot be read: ${describeSystemError(error)}`);
  }
}

function explain<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof CryptoError ? new TlsError(`${path}: ${error.message}`) : error;
  }
}

/**
 * Polls once a second for replaced files and applies their new contents. While a pair does not match, such as
 * between the renames of its two files, the previous pair stays in use. Warns about certificates that expire
 * soon or have expired: at startup, after a renewal, and daily.
 *
 * @returns a function that stops polling
 */
export function watchTls(
  pairs: readonly TlsFiles[],
  apply: (options: TlsOptions) => void,
  logger: Logger,
): () => void {
  const paths = pairs.flatMap(({ certificate, key }) => [certificate, key]);
  let seen = describeFiles(paths);
  let complained = "";
  const warnOfEnds = (): void => {
    for (const { certificate } of pairs) warnOfEnd(certificate, logger);
  };
  const check = (): void => {
    const found = describeFiles(paths);
    if (found === seen) return;
    try {
      apply(readTlsOptions(pairs));
      seen = found;
      logger.info({ files: paths }, "new certificates are in use");
      warnOfEnds();
    } catch (error) {
      // Logged once for each state of the files, because the next poll may find them complete.
      if (complained !== found) logger.warn({ err: error }, "new certificates are not used");
      complained = found;
    }
  };
  warnOfEnds();
  const timers = [setInterval(check, pollIntervalMs).unref(), setInterval(warnOfEnds, dayMs).unref()];
  return () => timers.forEach(clearInterval);
}

function warnOfEnd(file: string, logger: Logger): void {
  // A missing or damaged file is logged separately.
  const validTo = findEnd(file);
  if (validTo === undefined) return;
  const restMs = validTo.getTime() - Date.now();
  const line = { file, validUntil: validTo.toISOString() };
  if (restMs <= 0) logger.warn(line, "the certificate has expired and clients reject it; renew it");
  else if (restMs < noticeDays * dayMs) logger.warn(line, "the certificate expires soon; renew it");
}

function findEnd(file: string): Date | undefined {
  try {
    return readCertificates(readText(file))[0].validToDate;
  } catch {
    return undefined;
  }
}

/** Identifies the current versions of files, so that replacing a file changes the result. */
function describeFiles(paths: readonly string[]): string {
  return paths.map(describeFile).join(",");
}

/** Never throws: it runs in a timer, and a directory may be unreadable for a moment. */
function describeFile(path: string): string {
  try {
    const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
    return stat === undefined ? "none" : `${stat.ino} ${stat.size} ${stat.mtimeNs}`;
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : "unknown";
  }
}
