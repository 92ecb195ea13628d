/** Signs and verifies content of any size locally, without a server. */
import { createHash } from "node:crypto";
import {
  describeSignatureLength,
  hasRepresentative,
  isSignatureAlgorithm,
  isSignatureLength,
} from "../../crypto/algorithms.ts";
import type { CryptoProvider, PublicKey, RepresentativeHash, SecretKey } from "../../crypto/provider.ts";
import { distrustError, usageError } from "../exit-codes.ts";
import { gather, readWhole } from "../files/read.ts";

/** SLH-DSA reads a message twice (FIPS 205, section 9.2), so the whole message is kept in memory. */
const maxSlhDsaBytes = 64 * 1024 * 1024;
/** Maximum bytes of a signature file: the base64 of the largest signature, SLH-DSA-SHA2-256f. */
const maxSignatureFileBytes = 128 * 1024;

/** The content to sign, and the context that binds the signature to one use. */
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
  if (!hasRepresentative(secretKey.algorithm))
    return provider.sign(secretKey, await gatherForSlhDsa(chunks), { context });
  const representative = await digest(provider.startRepresentative(secretKey.publicKey, { context }), chunks);
  return provider.signRepresentative(secretKey, representative);
}

/**
 * Finds the key that verifies a signature. Reads the content once, in constant memory except for SLH-DSA.
 *
 * @param publicKeys only keys whose algorithm can have signatures of this length are tried
 * @returns undefined if no key verifies it
 */
export async function findVerifyingKey(
  provider: CryptoProvider,
  publicKeys: readonly PublicKey[],
  signature: Uint8Array,
  { chunks, context }: Content,
): Promise<PublicKey | undefined> {
  const candidates = publicKeys.filter(
    ({ algorithm }) => isSignatureAlgorithm(algorithm) && isSignatureLength(algorithm, signature.length),
  );
  // The length distinguishes SLH-DSA signatures from all others.
  if (candidates.some(({ algorithm }) => !hasRepresentative(algorithm))) {
    const message = await gatherForSlhDsa(chunks);
    for (const key of candidates) if (await provider.verify(key, message, signature, { context })) return key;
    return undefined;
  }
  if (candidates.length === 0) return undefined;
  const started = candidates.map((key) => ({ key, hash: provider.startRepresentative(key, { context }) }));
  for await (const chunk of chunks) for (const { hash } of started) hash.update(chunk);
  for (const { key, hash } of started)
    if (await provider.verifyRepresentative(key, hash.digest(), signature)) return key;
  return undefined;
}

/** The trusted keys, any of which may have signed. */
export interface TrustedKeys {
  readonly publicKeys: readonly PublicKey[];
  /** What to try if none of them signed. */
  readonly advice?: string | undefined;
}

/** Trusted keys, and what verifies with them. */
export interface VerifyingKeys extends TrustedKeys {
  readonly provider: CryptoProvider;
}

/** Describes the signing key, for programs and for people; among several keys, by number. */
export function describeSigner(
  { publicKeys, advice }: TrustedKeys,
  signer: PublicKey | undefined,
): { readonly fields: { readonly algorithm?: string; readonly keyNumber?: number }; readonly text: string } {
  const [only, another] = publicKeys;
  if (only !== undefined && another === undefined) {
    const text =
      signer === undefined && advice !== undefined ? `${only.algorithm}; ${advice}` : only.algorithm;
    return { fields: { algorithm: only.algorithm }, text };
  }
  if (signer === undefined) return { fields: {}, text: `none of ${publicKeys.length} keys` };
  const { algorithm } = signer;
  const keyNumber = publicKeys.indexOf(signer) + 1;
  return { fields: { algorithm, keyNumber }, text: `${algorithm}, key ${keyNumber} of ${publicKeys.length}` };
}

/** Finds the key that made a signature with an empty context. */
export function findSigner(
  { provider, publicKeys }: VerifyingKeys,
  signature: Uint8Array,
  chunks: AsyncIterable<Uint8Array>,
): Promise<PublicKey | undefined> {
  return findVerifyingKey(provider, publicKeys, signature, { chunks, context: new Uint8Array() });
}

/** Replaces chunks with one chunk: the SHA-256 hash of all of them. */
export async function* hashContent(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const hash = createHash("sha256");
  for await (const chunk of chunks) hash.update(chunk);
  yield hash.digest();
}

/**
 * Reads a signature, raw or in base64.
 *
 * @throws CliError if it cannot belong to one of these algorithms
 */
export async function readSignature(
  path: string,
  algorithms: readonly string[],
): Promise<Uint8Array<ArrayBuffer>> {
  const signing = [...new Set(algorithms.filter(isSignatureAlgorithm))];
  const fits = ({ length }: Uint8Array): boolean => signing.some((name) => isSignatureLength(name, length));
  const content = await readWhole(path, maxSignatureFileBytes);
  const text = Buffer.from(content).toString("latin1");
  const isBase64 = /^[A-Za-z0-9+/\s]+={0,2}$/.test(text.trimEnd());
  const signature = isBase64 ? Uint8Array.from(Buffer.from(text, "base64")) : content;
  if (fits(signature)) return signature;
  if (fits(content)) return content;
  const expected = signing.map((name) => `an ${name} signature has ${describeSignatureLength(name)}`);
  throw distrustError(
    `${path} has ${signature.length} bytes; ${expected.join(", ")}; name a signature file made with this key`,
  );
}

/**
 * Reads the value of `--context`.
 *
 * @throws CliError
 */
export function readContext(text: string | undefined): Uint8Array<ArrayBuffer> {
  const context = Uint8Array.from(Buffer.from(text ?? ""));
  if (context.length <= 255) return context;
  throw usageError(`--context is ${context.length} bytes; the limit is 255`);
}

async function digest(hash: RepresentativeHash, chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  for await (const chunk of chunks) hash.update(chunk);
  return hash.digest();
}

function gatherForSlhDsa(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const tooLarge = `the content is larger than ${maxSlhDsaBytes} bytes, the local limit for SLH-DSA; ML-DSA has no limit`;
  return gather(chunks, maxSlhDsaBytes, tooLarge);
}
