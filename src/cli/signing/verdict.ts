/** The parts of verification that all formats share. */
import type { CryptoProvider, PublicKey } from "../../crypto/provider.ts";
import { maxEmbeddedBytes } from "../../../extensions/signature-formats/limits.ts";
import { usageError } from "../exit-codes.ts";
import { gather } from "../files.ts";
import type { VerbInput } from "../verb.ts";
import { findVerifyingKey } from "./local.ts";

/** The trusted keys, any of which may have signed. */
export interface VerifyingKeys {
  readonly provider: CryptoProvider;
  readonly publicKeys: readonly PublicKey[];
}

/** The keys and the content that a document is checked with. */
export interface VerifyingJob extends VerifyingKeys {
  readonly input: VerbInput;
  readonly document: Uint8Array;
  /** Undefined if the document must contain it. */
  readonly content: AsyncIterable<Uint8Array> | undefined;
}

/** The answer, and what a valid document states. */
export interface Verdict {
  /** The key that has signed; undefined if the document is not valid. */
  readonly signer: PublicKey | undefined;
  /** Why it is not valid, if that is not the signature. */
  readonly reason?: string;
  /** The content of the document. */
  readonly payload?: Uint8Array | undefined;
  /** The statements of the signer, such as the type of the content. */
  readonly claims?: Readonly<Record<string, string>>;
}

/** Describes the key that has signed, for programs and for people. Among several, it has a number. */
export function describeSigner(
  publicKeys: readonly PublicKey[],
  signer: PublicKey | undefined,
): { readonly fields: { readonly algorithm?: string; readonly keyNumber?: number }; readonly text: string } {
  const [only, another] = publicKeys;
  if (only !== undefined && another === undefined)
    return { fields: { algorithm: only.algorithm }, text: only.algorithm };
  if (signer === undefined) return { fields: {}, text: `none of ${publicKeys.length} keys` };
  const { algorithm } = signer;
  const keyNumber = publicKeys.indexOf(signer) + 1;
  return { fields: { algorithm, keyNumber }, text: `${algorithm}, key ${keyNumber} of ${publicKeys.length}` };
}

/** The reason if the content is not that of the document. */
export const differs = "the content is not the signed content";

/** Finds the key of one signature of a message, under the empty context. */
export function findSigner(
  { provider, publicKeys }: VerifyingKeys,
  signature: Uint8Array,
  chunks: AsyncIterable<Uint8Array>,
): Promise<PublicKey | undefined> {
  return findVerifyingKey(provider, publicKeys, signature, { chunks, context: new Uint8Array() });
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

/** Selects the keys of the algorithm that a document states. @throws CliError if there are none */
export function selectKeys({ provider, publicKeys }: VerifyingKeys, stated: string): VerifyingKeys {
  const selected = publicKeys.filter(({ algorithm }) => algorithm === stated);
  if (selected.length > 0) return { provider, publicKeys: selected };
  throw usageError(`the signature is of ${stated}; ${nameAlgorithms(publicKeys)}`);
}

function nameAlgorithms(publicKeys: readonly PublicKey[]): string {
  const names = [...new Set(publicKeys.map(({ algorithm }) => algorithm))].join(", ");
  return `the ${publicKeys.length === 1 ? "key is" : "keys are"} of ${names}`;
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
