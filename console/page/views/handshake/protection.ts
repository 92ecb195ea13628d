/** Record protection and key schedule of TLS 1.3 (RFC 8446, sections 5.2 and 7), with Web Cryptography. */

import { fromHex, toHex } from "../../values.ts";

/** What a cipher suite selects. */
export interface Suite {
  readonly hash: "SHA-256" | "SHA-384";
  readonly hashBytes: number;
  readonly aead: "AES-GCM" | "ChaCha20-Poly1305";
  readonly keyBytes: number;
}

/** RFC 8446, appendix B.4, without the two CCM suites, which browsers cannot compute. */
const suites: Readonly<Record<number, Suite>> = {
  4865: { hash: "SHA-256", hashBytes: 32, aead: "AES-GCM", keyBytes: 16 },
  4866: { hash: "SHA-384", hashBytes: 48, aead: "AES-GCM", keyBytes: 32 },
  4867: { hash: "SHA-256", hashBytes: 32, aead: "ChaCha20-Poly1305", keyBytes: 32 },
};

export const tagBytes = 16;
const headerBytes = 5;

export function findSuite(codePoint: number | undefined): Suite | undefined {
  return suites[codePoint ?? 0];
}

/** Labels of the key log (RFC 9850). */
export type SecretLabel =
  | "CLIENT_HANDSHAKE_TRAFFIC_SECRET"
  | "SERVER_HANDSHAKE_TRAFFIC_SECRET"
  | "CLIENT_TRAFFIC_SECRET_0"
  | "SERVER_TRAFFIC_SECRET_0";

export type Secrets = ReadonlyMap<string, Uint8Array<ArrayBuffer>>;

/** Reads the key log's secrets for one connection. */
export function readSecrets(keyLog: string, clientRandom: Uint8Array): Secrets {
  const random = toHex(clientRandom);
  const found = new Map<string, Uint8Array<ArrayBuffer>>();
  for (const line of keyLog.split(/\r?\n/)) {
    const [, label, of, secret] =
      /^([A-Z0-9_]+) ([0-9a-f]{64}) ((?:[0-9a-f]{2}){32,64})$/i.exec(line.trim()) ?? [];
    if (label === undefined || secret === undefined || of?.toLowerCase() !== random) continue;
    found.set(label, fromHex(secret));
  }
  return found;
}

/** The keys of one direction. */
export interface TrafficKeys {
  readonly suite: Suite;
  readonly secret: Uint8Array<ArrayBuffer>;
  readonly key: Uint8Array<ArrayBuffer>;
  readonly iv: Uint8Array<ArrayBuffer>;
}

/** RFC 8446, section 7.3. */
export async function deriveKeys(suite: Suite, secret: Uint8Array<ArrayBuffer>): Promise<TrafficKeys> {
  const key = await expandLabel(suite, secret, "key", suite.keyBytes);
  return { suite, secret, key, iv: await expandLabel(suite, secret, "iv", 12) };
}

/** RFC 8446, section 7.2: the keys after a KeyUpdate. */
export async function updateKeys({ suite, secret }: TrafficKeys): Promise<TrafficKeys> {
  return deriveKeys(suite, await expandLabel(suite, secret, "traffic upd", suite.hashBytes));
}

/**
 * HKDF-Expand-Label with an empty context (RFC 8446, section 7.1). Its results here are at most as long as the
 * hash, so HKDF-Expand (RFC 5869) is one HMAC.
 */
async function expandLabel(suite: Suite, secret: Uint8Array<ArrayBuffer>, label: string, length: number) {
  const name = new TextEncoder().encode(`tls13 ${label}`);
  const info = Uint8Array.of(0, length, name.length, ...name, 0, 1);
  return (await computeHmac(suite, secret, info)).slice(0, length);
}

async function computeHmac({ hash }: Suite, key: Uint8Array<ArrayBuffer>, data: Uint8Array<ArrayBuffer>) {
  const imported = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", imported, data));
}

export async function computeHash({ hash }: Suite, data: Uint8Array<ArrayBuffer>) {
  return new Uint8Array(await crypto.subtle.digest(hash, data));
}

/** RFC 8446, section 4.4.4; undefined if something is missing. */
export async function computeFinished(
  { suite, secrets }: { readonly suite?: Suite | undefined; readonly secrets: Secrets },
  fromClient: boolean,
  transcriptHash: Uint8Array<ArrayBuffer> | undefined,
) {
  const secret = secrets.get(
    fromClient ? "CLIENT_HANDSHAKE_TRAFFIC_SECRET" : "SERVER_HANDSHAKE_TRAFFIC_SECRET",
  );
  if (suite === undefined || secret === undefined || transcriptHash === undefined) return undefined;
  const key = await expandLabel(suite, secret, "finished", suite.hashBytes);
  return computeHmac(suite, key, transcriptHash);
}

/** Whether the browser has the cipher. */
export function hasCipher({ suite, key }: TrafficKeys): Promise<boolean> {
  return importCipher(suite, key).then(
    () => true,
    () => false,
  );
}

function importCipher({ aead }: Suite, key: Uint8Array<ArrayBuffer>): Promise<CryptoKey> {
  const format = (aead === "AES-GCM" ? "raw" : "raw-secret") as "raw";
  return crypto.subtle.importKey(format, key, aead, false, ["decrypt"]);
}

/**
 * Opens a protected record. The plaintext has the offsets of the ciphertext, because both ciphers XOR a key
 * stream.
 *
 * @param sequence the record's sequence number under these keys
 * @returns content, type and padding; undefined if the record does not authenticate
 */
export async function openRecord(
  { suite, key, iv }: TrafficKeys,
  sequence: number,
  record: Uint8Array<ArrayBuffer>,
) {
  // RFC 8446, section 5.3: the sequence number, as wide as the vector.
  const nonce = iv.slice();
  for (let at = 0; at < 6; at += 1) {
    const index = nonce.length - 1 - at;
    nonce[index] = (nonce[index] ?? 0) ^ (Math.floor(sequence / 2 ** (8 * at)) & 0xff);
  }
  const additionalData = record.slice(0, headerBytes);
  try {
    const cipher = await importCipher(suite, key);
    const opened = await crypto.subtle.decrypt(
      { name: suite.aead, iv: nonce, additionalData, tagLength: 128 },
      cipher,
      record.slice(headerBytes),
    );
    return new Uint8Array(opened);
  } catch {
    return undefined;
  }
}
