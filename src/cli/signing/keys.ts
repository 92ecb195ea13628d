/** Server-held and local keys that sign and verify content of any size. */
import { ConnectError } from "@connectrpc/connect";
import { KmsService, type SignResult } from "#gen/kms/kms_service_pb.ts";
import { isSignatureAlgorithm } from "../../crypto/algorithms.ts";
import type { CryptoProvider, PublicKey } from "../../crypto/provider.ts";
import { type ApiClient, theAnswer, toUpload } from "../connection/api-client.ts";
import { CliError, exitCodes, findReason } from "../exit-codes.ts";
import { gather, readText } from "../files/read.ts";
import { parsePublicKey, parsePublicKeys, requireSigning } from "../keys/read-keys.ts";
import { readWithProgress } from "../output/progress.ts";
import type { VerbInput } from "../verb.ts";
import { type Content, hashContent, type TrustedKeys } from "./local.ts";

/** A signature and the key that made it. */
export interface Signed {
  readonly signature: Uint8Array;
  readonly algorithm: string;
  /** Set for a server-held key. */
  readonly keyId?: string;
}

/** Reads the content to sign or verify in chunks, with a progress bar. */
export function readContent({ operands: [path = ""], options }: VerbInput): AsyncGenerator<Uint8Array> {
  const chunks = readWithProgress(path);
  return options.flag("sha256") ? hashContent(chunks) : chunks;
}

/** A key to verify with. */
export interface ServerKey {
  readonly publicKey: PublicKey;
  /** What to try if a signature is not valid. Set if the handle is a name with several versions. */
  readonly advice: string | undefined;
}

/**
 * Fetches the public half of a server-held key that may verify.
 *
 * @param handle the key ID, or a name
 * @throws CliError
 */
export async function findServerKey(
  provider: CryptoProvider,
  server: ApiClient,
  handle: string,
): Promise<ServerKey> {
  const { result, versions } = await server.ask(KmsService.method.getKey, { keyId: handle });
  const status = result?.status ?? "";
  if (!["ACTIVE", "ROTATED"].includes(status))
    throw new CliError(
      exitCodes.refused,
      `key ${handle} is ${status} and cannot verify (FAILED_PRECONDITION, KEY_STATE_INVALID)`,
    );
  const publicKey = parsePublicKey(provider, result?.publicKeyPem ?? "", `key ${handle}`);
  requireSigning(publicKey.algorithm, `key ${handle}`);
  const advice = `${handle} is version ${result?.version}; if another version signed, use its key ID or ${handle}/VERSION`;
  return { publicKey, advice: versions.length > 1 ? advice : undefined };
}

/**
 * Reads the keys to verify with: --key, --public-key or --certificate.
 *
 * @throws CliError
 */
export async function findPublicKeys(
  provider: CryptoProvider,
  { options, server }: VerbInput,
): Promise<TrustedKeys> {
  const { name, value: origin } = options.one("key", "public-key", "certificate");
  if (name === "key") {
    const { publicKey, advice } = await findServerKey(provider, server, origin);
    return { publicKeys: [publicKey], advice };
  }
  const publicKeys =
    name === "certificate"
      ? [await readKeyOf(provider, origin)]
      : parsePublicKeys(provider, readText(origin), origin);
  const [first] = publicKeys;
  // Ignore encapsulation keys, unless the file contains nothing else.
  const canVerify = publicKeys.some(({ algorithm }) => isSignatureAlgorithm(algorithm));
  if (!canVerify && first !== undefined) requireSigning(first.algorithm, origin);
  return { publicKeys, advice: undefined };
}

async function readKeyOf(provider: CryptoProvider, file: string): Promise<PublicKey> {
  // Loaded on demand, because it loads the ASN.1 parsers.
  const { exportPublicKey, readSigningCertificates } = await import("../../crypto/signing-certificates.ts");
  const [certificate] = readSigningCertificates(readText(file), file);
  return parsePublicKey(provider, exportPublicKey(certificate, file), file);
}

/** Signs with a server-held key. */
export async function signOnServer(server: ApiClient, keyId: string, content: Content): Promise<Signed> {
  // SLH-DSA reads a message twice, so the server accepts no stream for it. Fetch the key's algorithm first.
  return signWithAlgorithm(server, keyId, await findAlgorithm(server, keyId), content);
}

/**
 * Signs with a server-held key.
 *
 * @param algorithm "" if unknown
 */
export async function signWithAlgorithm(
  server: ApiClient,
  keyId: string,
  algorithm: string,
  { chunks, context }: Content,
): Promise<Signed> {
  if (algorithm.startsWith("SLH-DSA")) {
    const data = await gather(chunks, maxServerBytes, tooLargeForServer);
    const { result } = await server.ask(KmsService.method.sign, {
      keyId,
      data,
      context: Uint8Array.from(context),
    });
    return toSigned(result);
  }
  const requests = toUpload({ keyId, context: Uint8Array.from(context) }, chunks);
  const { result } = await theAnswer(server.stream(KmsService.method.signStream, requests));
  return toSigned(result);
}

/** Returns the algorithm of a key; "" if the caller's grant allows SIGN but not GET_KEY. */
async function findAlgorithm(server: ApiClient, keyId: string): Promise<string> {
  try {
    return (await server.ask(KmsService.method.getKey, { keyId })).result?.algorithm ?? "";
  } catch (error) {
    if (error instanceof ConnectError && ["GRANT_MISSING", "SCOPE_MISSING"].includes(findReason(error) ?? ""))
      return "";
    throw error;
  }
}

function toSigned(result: SignResult | undefined): Signed {
  if (result === undefined) throw new Error("the server answered without a signature");
  const { signature, algorithm, keyId } = result;
  return { signature, algorithm, keyId };
}

/** Maximum bytes of data in one message: the server's limit minus room for the other fields. */
const maxServerBytes = 4 * 1024 * 1024 - 4096;
const tooLargeForServer = `the content is larger than ${maxServerBytes} bytes, the limit for server-held SLH-DSA keys; ML-DSA keys have no limit`;
