/** Recomputes the hash of a token's metadata. */
import type { TokenTransfer } from "#gen/nft/nft_service_pb.ts";
import { sha256 } from "../../algorithms.ts";
import { toUtf8 } from "../../values.ts";

export interface Metadata {
  readonly name: string;
  readonly description: string;
  readonly artworkUri: string;
}

/**
 * Canonical JSON (RFC 8785): members sorted by name, without spaces. Its string format (section 3.2.2.2) is
 * the one of JSON.stringify.
 */
export function canonicalize({ artworkUri, description, name }: Metadata): Uint8Array<ArrayBuffer> {
  return toUtf8(JSON.stringify({ artworkUri, description, name }));
}

/** SHA-256 of the canonical JSON, 32 bytes. */
export function hashMetadata(metadata: Metadata): Promise<Uint8Array> {
  return sha256(canonicalize(metadata));
}

/** Replaces one letter; the last one if the text is shorter. */
export function changeLetter(text: string, place: number): string {
  const letters = Array.from(text);
  const at = Math.min(Math.max(0, place), letters.length - 1);
  const letter = letters[at];
  // Flipping the last bit turns a letter into a letter.
  if (letter !== undefined) letters[at] = String.fromCodePoint((letter.codePointAt(0) ?? 0) ^ 1);
  return letters.join("");
}

/**
 * Follows a token from its creator through all owners.
 *
 * @returns whether no step is missing and the last owner is `owner`
 */
export function isUnbroken(creator: string, history: readonly TokenTransfer[], owner: string): boolean {
  let holder = creator;
  for (const { fromAddress, toAddress } of history) {
    if (fromAddress !== holder) return false;
    holder = toAddress;
  }
  return holder === owner;
}
