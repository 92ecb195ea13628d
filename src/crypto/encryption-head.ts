/**
 * The head of a ciphertext of the key service, and what binds it to its key: see docs/formats.md. Runs in browsers too.
 *
 *     ciphertext = head ‖ enc ‖ ct of HPKE (RFC 9180), base mode, single shot
 *     head       = 0x01 ‖ the 16 bytes of the key's UUID
 *     info       = "qsp-kms-encrypt-v1" ‖ head
 */
const version = 1;
const uuidBytes = 16;
const label = new TextEncoder().encode("qsp-kms-encrypt-v1");

export const headBytes = 1 + uuidBytes;

/**
 * Writes the head for a key.
 *
 * @param keyId "key-" and a UUID.
 * @throws TypeError for any other text
 */
export function writeHead(keyId: string): Uint8Array<ArrayBuffer> {
  const [, uuid] = /^key-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/.exec(keyId) ?? [];
  if (uuid === undefined) throw new TypeError(`keyId must be "key-" and a UUID, not "${keyId}"`);
  const digits = uuid.replaceAll("-", "");
  const bytes = Array.from({ length: uuidBytes }, (_, at) =>
    Number.parseInt(digits.slice(2 * at, 2 * at + 2), 16),
  );
  return Uint8Array.of(version, ...bytes);
}

/** Reads the ID of the key from a ciphertext; undefined if this is no ciphertext of the first version. */
export function readHead(ciphertext: Uint8Array): string | undefined {
  if (ciphertext.length < headBytes || ciphertext[0] !== version) return undefined;
  const digits = [...ciphertext.subarray(1, headBytes)]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
  return `key-${digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5")}`;
}

/** Writes `info` of HPKE for a head. */
export function writeInfo(head: Uint8Array): Uint8Array<ArrayBuffer> {
  return Uint8Array.of(...label, ...head.subarray(0, headBytes));
}
