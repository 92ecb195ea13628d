/** Signs and verifies content of any size locally, without a server. */
import { createHash } from "node:crypto";
import {
  isMlDsaAlgorithm,
  isSignatureAlgorithm,
  type MlDsaAlgorithm,
  signatureAlgorithms,
} from "../crypto/algorithms.ts";
import type { CryptoProvider, MuHash, PublicKey, SecretKey } from "../crypto/provider.ts";
import { usageError } from "./exit-codes.ts";
import { gather, readWhole } from "./files.ts";

/** SLH-DSA reads a message twice (FIPS 205, section 9.2), so the whole message is in memory. */
const maxSlhDsaBytes = 64 * 1024 * 1024;
/** Longest file that can hold a signature: the base64 of the largest, SLH-DSA-SHA2-256f. */
const maxSignatureFileBytes = 128 * 1024;

/** The content to sign, and the use that its signature is bound to. */
export interface Content {
  readonly chunks: AsyncIterable<Uint8Array>;
  /** 0 to 255 bytes. */
  readonly context: Uint8Array;
}

/** Signs in constant memory, except with SLH-DSA. */
export async function signContent(
  provider: CryptoProvider,
  secretKey: SecretKey,
  { chunks, context }: Content,
): Promise<Uint8Array> {
  if (!isMlDsaAlgorithm(secretKey.algorithm))
    return provider.sign(secretKey, await gatherForSlhDsa(chunks), { context });
  return provider.signMu(secretKey, await digest(provider.startMu(secretKey.publicKey, { context }), chunks));
}

/** Verifies in constant memory, except with SLH-DSA. */
export async function verifyContent(
  provider: CryptoProvider,
  publicKey: PublicKey,
  signature: Uint8Array,
  { chunks, context }: Content,
): Promise<boolean> {
  const { algorithm } = publicKey;
  if (!isMlDsaAlgorithm(algorithm))
    return provider.verify(publicKey, await gatherForSlhDsa(chunks), signature, { context });
  const mu = await digest(provider.startMu(publicKey, { context }), chunks);
  // FIPS 204, algorithm 8 from line 8 on; node:crypto takes no mu.
  const verifier = await loadVerifier(algorithm);
  return verifier.internal.verify(signature, mu, publicKey.exportRaw(), { externalMu: true });
}

async function loadVerifier(algorithm: MlDsaAlgorithm) {
  const { ml_dsa44, ml_dsa65, ml_dsa87 } = await import("@noble/post-quantum/ml-dsa.js");
  return { "ML-DSA-44": ml_dsa44, "ML-DSA-65": ml_dsa65, "ML-DSA-87": ml_dsa87 }[algorithm];
}

/** The one chunk that is SHA-256 of all chunks. */
export async function* hashContent(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const hash = createHash("sha256");
  for await (const chunk of chunks) hash.update(chunk);
  yield hash.digest();
}

/** Reads a signature: the raw bytes, or their base64. @throws CliError if it cannot be one of this algorithm */
export async function readSignature(path: string, algorithm: string): Promise<Uint8Array<ArrayBuffer>> {
  const expectedBytes = isSignatureAlgorithm(algorithm) ? signatureAlgorithms[algorithm].signatureBytes : 0;
  const content = await readWhole(path, maxSignatureFileBytes);
  const text = Buffer.from(content).toString("latin1");
  const isBase64 = content.length > expectedBytes && /^[A-Za-z0-9+/\s]+={0,2}$/.test(text.trimEnd());
  const signature = isBase64 ? Uint8Array.from(Buffer.from(text, "base64")) : content;
  if (signature.length !== expectedBytes)
    throw usageError(`${path} has ${signature.length} bytes; an ${algorithm} signature has ${expectedBytes}`);
  return signature;
}

/** Reads the value of `--context`. @throws CliError */
export function readContext(text: string | undefined): Uint8Array<ArrayBuffer> {
  const context = Uint8Array.from(Buffer.from(text ?? ""));
  if (context.length <= 255) return context;
  throw usageError(`--context is ${context.length} bytes; the limit is 255`);
}

async function digest(mu: MuHash, chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  for await (const chunk of chunks) mu.update(chunk);
  return mu.digest();
}

function gatherForSlhDsa(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const tooLarge = `the content is larger than ${maxSlhDsaBytes} bytes, the local limit for SLH-DSA; ML-DSA has no limit`;
  return gather(chunks, maxSlhDsaBytes, tooLarge);
}
