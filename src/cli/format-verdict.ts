/** The parts of verification that all formats share. */
import { isSignatureAlgorithm, signatureAlgorithms } from "../crypto/algorithms.ts";
import type { CryptoProvider, PublicKey } from "../crypto/provider.ts";
import { maxEmbeddedBytes } from "../formats/limits.ts";
import { usageError } from "./exit-codes.ts";
import { gather } from "./files.ts";
import { verifyContent } from "./signatures.ts";
import type { VerbInput } from "./verb.ts";

/** The trusted key. */
export interface VerifyingKey {
  readonly provider: CryptoProvider;
  readonly publicKey: PublicKey;
}

/** The key and the content that a document is checked with. */
export interface VerifyingJob extends VerifyingKey {
  readonly input: VerbInput;
  readonly document: Uint8Array;
  /** Undefined if the document must contain it. */
  readonly content: AsyncIterable<Uint8Array> | undefined;
}

/** The answer, and what a valid document states. */
export interface Verdict {
  readonly valid: boolean;
  /** Why it is not valid, if that is not the signature. */
  readonly reason?: string;
  /** The content of the document. */
  readonly payload?: Uint8Array | undefined;
  /** The statements of the signer, such as the type of the content. */
  readonly claims?: Readonly<Record<string, string>>;
}

/** The reason if the content is not that of the document. */
export const differs = "the content is not the signed content";

/** Verifies one signature of a message, under the empty context. */
export async function isSignatureOf(
  { provider, publicKey }: VerifyingKey,
  signature: Uint8Array,
  chunks: AsyncIterable<Uint8Array>,
): Promise<boolean> {
  const { algorithm } = publicKey;
  const isWhole =
    isSignatureAlgorithm(algorithm) && signature.length === signatureAlgorithms[algorithm].signatureBytes;
  return isWhole && verifyContent(provider, publicKey, signature, { chunks, context: new Uint8Array() });
}

/** Compares content with that of a document, in constant memory. */
export async function isContent(content: AsyncIterable<Uint8Array>, payload: Uint8Array): Promise<boolean> {
  let at = 0;
  for await (const chunk of content) {
    if (Buffer.compare(chunk, payload.subarray(at, at + chunk.length)) !== 0) return false;
    at += chunk.length;
  }
  return at === payload.length;
}

/** @throws CliError if the document states another algorithm than that of the key */
export function requireAlgorithm({ algorithm }: PublicKey, stated: string): void {
  if (algorithm !== stated) throw usageError(`the signature is of ${stated}; the key is of ${algorithm}`);
}

/** @throws CliError if the document is all that was given, and does not contain the content */
export function requireContent(content: AsyncIterable<Uint8Array> | undefined): AsyncIterable<Uint8Array> {
  if (content !== undefined) return content;
  throw usageError("the signature is detached; give the content as FILE and the signature with --signature");
}

/** Reads the content of a format that needs it as a whole. @throws CliError */
export function gatherContent(content: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  return gather(
    content,
    maxEmbeddedBytes,
    `the content is larger than ${maxEmbeddedBytes} bytes, the limit of this format`,
  );
}
