/** Verifies signatures with Web Cryptography, and ML-DSA with noble too. */
import { nameCode, verifyHere } from "../../algorithms.ts";
import { type Algorithms, ecdsa, named, rsa } from "../../web-crypto.ts";
import type { Field } from "./field.ts";

/** A signature's verdict, and the code that gave it. */
export interface SignatureVerdict {
  readonly holds: boolean;
  readonly by: string;
}

interface Signed {
  /** A SignatureScheme of RFC 8446, section 4.2.3. */
  readonly scheme: number;
  /** SubjectPublicKeyInfo in DER. */
  readonly publicKeyInfo: Uint8Array<ArrayBuffer>;
  readonly signature: Uint8Array<ArrayBuffer>;
  readonly content: Uint8Array<ArrayBuffer>;
}

/** By SignatureScheme (RFC 8446, section 4.2.3; ML-DSA: draft-ietf-tls-mldsa). */
const algorithms: Readonly<Record<number, Algorithms>> = {
  1027: ecdsa("P-256", 256),
  1283: ecdsa("P-384", 384),
  1539: ecdsa("P-521", 512),
  2052: rsa("RSA-PSS", 256),
  2053: rsa("RSA-PSS", 384),
  2054: rsa("RSA-PSS", 512),
  2055: named("Ed25519"),
  2308: named("ML-DSA-44"),
  2309: named("ML-DSA-65"),
  2310: named("ML-DSA-87"),
};

/** A field's first descendant with a name. */
export function findField(field: Field | undefined, ...names: readonly string[]): Field | undefined {
  const [name, ...others] = names;
  if (field === undefined || name === undefined) return field;
  for (const part of field.parts) {
    const found = part.name === name ? part : findField(part, name);
    if (found !== undefined) return findField(found, ...others);
  }
  return undefined;
}

/** @returns undefined if the browser cannot verify this algorithm */
export async function verifySignature({
  scheme,
  publicKeyInfo,
  signature,
  content,
}: Signed): Promise<SignatureVerdict | undefined> {
  const algorithm = algorithms[scheme];
  if (algorithm === undefined) return undefined;
  const [importing, verifying] = algorithm;
  const { name, namedCurve } = importing;
  if (name.startsWith("ML-DSA")) {
    const publicKey = publicKeyInfo.subarray(-publicKeyBytes(name));
    return { holds: await verifyHere(name, signature, content, publicKey), by: nameCode(name) };
  }
  const raw = namedCurve === undefined ? signature : toRawSignature(signature, namedCurve);
  try {
    const key = await crypto.subtle.importKey("spki", publicKeyInfo, importing, false, ["verify"]);
    const holds = raw !== undefined && (await crypto.subtle.verify(verifying, key, raw, content));
    return { holds, by: "Web Cryptography" };
  } catch (error) {
    // Otherwise the key is malformed.
    const isUnknown = error instanceof DOMException && error.name === "NotSupportedError";
    return isUnknown ? undefined : { holds: false, by: "Web Cryptography" };
  }
}

/** FIPS 204, table 2. */
function publicKeyBytes(name: string): number {
  return { "ML-DSA-44": 1312, "ML-DSA-65": 1952, "ML-DSA-87": 2592 }[name] ?? 0;
}

/** Web Cryptography takes r and s at full length, without DER; undefined if that cannot be. */
function toRawSignature(der: Uint8Array, curve: string): Uint8Array<ArrayBuffer> | undefined {
  const size = { "P-256": 32, "P-384": 48, "P-521": 66 }[curve] ?? 0;
  const raw = new Uint8Array(2 * size);
  if (der[0] !== 0x30) return undefined;
  let at = der[1] === 0x81 ? 3 : 2;
  for (const end of [size, 2 * size]) {
    const length = der[at + 1] ?? 0;
    const number = der.subarray(at + 2, at + 2 + length);
    const digits = number.subarray(number.findIndex((byte) => byte !== 0));
    if (der[at] !== 2 || digits.length > size) return undefined;
    raw.set(digits, end - digits.length);
    at += 2 + length;
  }
  return raw;
}
