/**
 * age's recipients and identities: Bech32 (BIP 173) without its limit of 90 characters. Texts of the other case are
 * not valid, as in age.
 */
import { bech32 } from "@scure/base";

const recipientPrefix = "age1pq";
const secretPrefix = "AGE-SECRET-KEY-PQ-";
const pluginPrefix = "AGE-PLUGIN-QSP-";

/** Bytes of an X-Wing public key (draft-connolly-cfrg-xwing-kem-11, section 5.1). */
export const publicKeyBytes = 1216;
const seedBytes = 32;

/** Writes the recipient "age1pq1…" of an X-Wing public key (1216 bytes). */
export function encodeRecipient(publicKey: Uint8Array): string {
  return bech32.encode(recipientPrefix, bech32.toWords(publicKey), false);
}

/** @returns the X-Wing public key of a recipient "age1pq1…"; undefined for any other text */
export function decodeRecipient(text: string): Uint8Array | undefined {
  return decode(recipientPrefix, text, publicKeyBytes);
}

/** @returns the X-Wing seed of an identity "AGE-SECRET-KEY-PQ-1…", which the caller wipes; undefined for any other text */
export function decodeSecretIdentity(text: string): Uint8Array | undefined {
  return decode(secretPrefix, text, seedBytes);
}

/** Writes the identity "AGE-PLUGIN-QSP-1…" of a server-held key. It is not secret. */
export function encodePluginIdentity(handle: string): string {
  const words = bech32.toWords(new TextEncoder().encode(handle));
  return bech32.encode(pluginPrefix, words, false).toUpperCase();
}

/** @returns the handle in an identity "AGE-PLUGIN-QSP-1…", "" for one without a key; undefined for any other text */
export function decodePluginIdentity(text: string): string | undefined {
  const bytes = decode(pluginPrefix, text);
  try {
    return bytes === undefined ? undefined : new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function decode(prefix: string, text: string, length?: number): Uint8Array | undefined {
  if (!text.startsWith(`${prefix}1`)) return undefined;
  // Errors of the library would quote the text, which may be secret.
  const decoded = bech32.decodeUnsafe(text, false);
  if (decoded?.prefix !== prefix.toLowerCase()) return undefined;
  const bytes = bech32.fromWordsUnsafe(decoded.words) ?? undefined;
  return length === undefined || bytes?.length === length ? bytes : undefined;
}
