/** Vectors of encrypted data: HPKE with a fixed encapsulation. */
import { createCipheriv, createHmac } from "node:crypto";
import { fixedBytes, type KemKey, kemKey, xWingKey } from "./keys.ts";
import { awkwardText, utf8, type VectorCase, type VectorSet, vectorCase } from "./vector-set.ts";

const uuid = "00000000000040008000000000000017";
const keyId = "key-00000000-0000-4000-8000-000000000017";
const keys: Readonly<Record<string, KemKey & { readonly kemId: string }>> = {
  xWing: { ...xWingKey("encryption, X-Wing"), kemId: "647a" },
  mlKem768: { ...kemKey("encryption, ML-KEM-768", "ML-KEM-768"), kemId: "0041" },
  mlKem1024: { ...kemKey("encryption, ML-KEM-1024"), kemId: "0042" },
};

/** RFC 9180, sections 4 and 5.1, in hexadecimal. */
function schedule(kemId: string, sharedSecret: Uint8Array, info: string) {
  const suite = `48504b45${kemId}00010002`;
  const hmac = (key: Uint8Array, hex: string): Buffer =>
    createHmac("sha256", key).update(Buffer.from(hex, "hex")).digest();
  const hex = (text: string): string => Buffer.from(`${text}`).toString("hex");
  const extract = (salt: Uint8Array, label: string, input: string): Buffer =>
    hmac(salt, hex("HPKE-v1") + suite + hex(label) + input);
  const none = new Uint8Array();
  const [pskIdHash, infoHash] = [extract(none, "psk_id_hash", ""), extract(none, "info_hash", info)];
  const context = `00${pskIdHash.toString("hex")}${infoHash.toString("hex")}`;
  const secret = extract(sharedSecret, "secret", "");
  const expand = (label: string, length: number): Buffer => {
    const labeled = length.toString(16).padStart(4, "0") + hex("HPKE-v1") + suite + hex(label) + context;
    return hmac(secret, `${labeled}01`).subarray(0, length);
  };
  return { key: expand("key", 32), nonce: expand("base_nonce", 12) };
}

/** What a case has instead of what it should. */
interface Change {
  readonly associatedData?: Uint8Array;
  readonly info?: string;
}

function make(
  name: string,
  keyName: string,
  plaintext: Uint8Array,
  associatedData: Uint8Array,
  change: Change = {},
): VectorCase {
  const key = keys[keyName];
  if (key === undefined) throw new Error(`unknown key ${keyName}`);
  const { ciphertext: enc, sharedSecret } = key.encapsulate(
    fixedBytes(`encryption, ${name}`, key.randomBytes),
  );
  const head = `01${uuid}`;
  const info = utf8("qsp-kms-encrypt-v1").toHex() + head;
  const scheduled = schedule(key.kemId, sharedSecret, change.info ?? info);
  const sealing = createCipheriv("aes-256-gcm", scheduled.key, scheduled.nonce);
  sealing.setAAD(change.associatedData ?? associatedData);
  const ct = Buffer.concat([sealing.update(plaintext), sealing.final(), sealing.getAuthTag()]);
  const isValid = Object.keys(change).length === 0;
  return vectorCase(name, {
    valid: isValid,
    input: { key: keyName, keyId, plaintext: plaintext.toHex(), associatedData: associatedData.toHex() },
    intermediate: {
      info,
      sharedSecret: sharedSecret.toHex(),
      ...(isValid && { aeadKey: scheduled.key.toHex(), nonce: scheduled.nonce.toHex() }),
    },
    result: { ciphertext: head + enc.toHex() + ct.toString("hex") },
  });
}

/** Ciphertexts of each KEM, and what must not decrypt. */
export function encryptionVectors(): VectorSet {
  const [hello, row] = [utf8("hello"), utf8("row 17")];
  const entries = Object.entries(keys).map(([name, { entry }]) => [name, entry] as const);
  return {
    format: "qsp-vectors/1",
    name: "encryption",
    specification: "docs/formats.md#encrypted-data",
    note: "The encapsulation is deterministic here; servers and clients encapsulate at random.",
    keys: Object.fromEntries(entries),
    cases: [
      ...Object.keys(keys).map((name) => make(`text, ${name}`, name, hello, row)),
      make("no data and no associated data", "xWing", new Uint8Array(), new Uint8Array()),
      make("non-ASCII text", "xWing", utf8(awkwardText), utf8(awkwardText)),
      make("other associated data", "xWing", hello, row, { associatedData: utf8("row 18") }),
      make("the info of a different key", "mlKem768", hello, row, {
        info: `${utf8("qsp-kms-encrypt-v1").toHex()}01${uuid.replace("17", "18")}`,
      }),
      make("no info", "mlKem1024", hello, row, { info: "" }),
    ],
  };
}
