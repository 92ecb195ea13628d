/** Verification steps that all formats share. */
import { usageError } from "../../src/cli/exit-codes.ts";
import { gather } from "../../src/cli/files/read.ts";
import type { VerifyingKeys } from "../../src/cli/signing/local.ts";
import type { VerbInput } from "../../src/cli/verb.ts";
import type { PublicKey } from "../../src/crypto/provider.ts";
import { maxEmbeddedBytes } from "./limits.ts";

/** The keys and content to check a document against. */
export interface VerifyingJob extends VerifyingKeys {
  readonly input: VerbInput;
  readonly document: Uint8Array;
  /** Undefined if the document must contain it. */
  readonly content: AsyncIterable<Uint8Array> | undefined;
}

/** The verdict, and the claims of a valid document. */
export interface Verdict {
  /** The key that signed; undefined if the document is not valid. */
  readonly signer: PublicKey | undefined;
  /** Why verification failed, if not because of the signature. */
  readonly reason?: string;
  /** The content inside the document, which the caller compares with the given one. */
  readonly payload?: Uint8Array | undefined;
  /** The signer's claims, such as the content type. */
  readonly claims?: Readonly<Record<string, string>>;
}

/** The reason if the given content differs from the document's. */
export const differs = "the content is not the signed content";

/** Compares content with a document's, in constant memory. */
export async function isContent(content: AsyncIterable<Uint8Array>, payload: Uint8Array): Promise<boolean> {
  let at = 0;
  for await (const chunk of content) {
    if (Buffer.compare(chunk, payload.subarray(at, at + chunk.length)) !== 0) return false;
    at += chunk.length;
  }
  return at === payload.length;
}

/**
 * Selects the keys of the document's algorithms.
 *
 * @returns with the reason for the verdict if there are none
 */
export function selectKeys(
  { provider, publicKeys }: VerifyingKeys,
  stated: readonly string[],
): { readonly keys: VerifyingKeys; readonly reason?: string } {
  const selected = publicKeys.filter(({ algorithm }) => stated.includes(algorithm));
  const keys = { provider, publicKeys: selected };
  if (selected.length > 0) return { keys };
  const own = list(publicKeys.map(({ algorithm }) => algorithm));
  const are = publicKeys.length === 1 ? "key is" : "keys are";
  return { keys, reason: `the signature uses ${list(stated)}, but the ${are} ${own}` };
}

function list(algorithms: readonly string[]): string {
  return [...new Set(algorithms)].join(", ");
}

/** @throws CliError if only the document was given and it does not contain the content */
export function requireContent(content: AsyncIterable<Uint8Array> | undefined): AsyncIterable<Uint8Array> {
  if (content !== undefined) return content;
  throw usageError("the signature is detached; give the content as FILE and the signature with --signature");
}

/**
 * Reads the whole content, for formats that need it in memory.
 *
 * @throws CliError
 */
export function gatherContent(content: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  return gather(
    content,
    maxEmbeddedBytes,
    `the content is larger than ${maxEmbeddedBytes} bytes, the limit of this format`,
  );
}
