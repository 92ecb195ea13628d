/** Verifies a compact JWS (RFC 7515) with any JWK set (RFC 7517), in the browser only. */
import { nameCode, verifyHere } from "../../algorithms.ts";
import type { TokenParts } from "../../jwt.ts";
import { fromBase64Url, toUtf8 } from "../../values.ts";
import { type Algorithms, ecdsa, named, rsa } from "../../web-crypto.ts";

/** What the page found out about a signature. */
export interface JwsVerdict {
  /** Undefined if the signature could not be checked. */
  readonly holds?: boolean;
  /** The finding in a sentence. */
  readonly says: string;
}

type Jwk = Readonly<Record<string, unknown>>;

/** By "alg": RFC 7518, section 3.1; RFC 8037, section 3.1; RFC 9864; RFC 9964. */
const algorithms: Readonly<Record<string, Algorithms>> = {
  ...Object.fromEntries(
    [256, 384, 512].flatMap((bits) => [
      [`RS${bits}`, rsa("RSASSA-PKCS1-v1_5", bits)],
      [`PS${bits}`, rsa("RSA-PSS", bits)],
    ]),
  ),
  ES256: ecdsa("P-256", 256),
  ES384: ecdsa("P-384", 384),
  ES512: ecdsa("P-521", 512),
  EdDSA: named("Ed25519"),
  Ed25519: named("Ed25519"),
  "ML-DSA-44": named("ML-DSA-44"),
  "ML-DSA-65": named("ML-DSA-65"),
  "ML-DSA-87": named("ML-DSA-87"),
};

/** @throws Error for a text that is not a JWK set or a JWK */
export function readKeySet(text: string): readonly Jwk[] {
  const set = JSON.parse(text);
  const keys: unknown = set?.keys ?? [set];
  if (!Array.isArray(keys) || !keys.every((key) => typeof key?.kty === "string"))
    throw new Error('a JWK set is {"keys": […]}, and each key has a "kty"');
  return keys;
}

/** Verifies with the key that the header names, or with each key of its algorithm. */
export async function verifyJws(token: TokenParts, keys: readonly Jwk[]): Promise<JwsVerdict> {
  const { alg, kid } = token.header;
  if (alg === "none")
    return { holds: false, says: "The header asks for no signature, which nobody should accept." };
  if (typeof alg !== "string" || algorithms[alg] === undefined)
    return { says: `This page does not verify the algorithm ${String(alg)}.` };
  // The key limits what the header may ask for (RFC 8725, section 3.1).
  const candidates = keys.filter(
    (key) => (kid === undefined || key.kid === kid) && (key.alg === undefined || key.alg === alg),
  );
  if (candidates.length === 0)
    return {
      says:
        kid === undefined
          ? `The set has no key for ${alg}.`
          : `The set has no key ${String(kid)} for ${alg}.`,
    };
  let failed: JwsVerdict | undefined;
  for (const key of candidates) {
    const verdict = await verifyWithKey(alg, token, key);
    if (verdict.holds === true) return verdict;
    failed ??= verdict;
  }
  return failed ?? { says: "" };
}

async function verifyWithKey(alg: string, token: TokenParts, key: Jwk): Promise<JwsVerdict> {
  const which = typeof key.kid === "string" ? `key ${key.kid}` : "this key";
  const report = (holds: boolean, by: string): JwsVerdict => ({
    holds,
    says: `${holds ? "Valid" : "Not valid"} for ${which}, by ${by}.`,
  });
  const content = toUtf8(token.signedText);
  if (alg.startsWith("ML-DSA-") && typeof key.pub === "string")
    return report(await verifyHere(alg, token.signature, content, fromBase64Url(key.pub)), nameCode(alg));
  const [importing, verifying] = algorithms[alg] ?? named(alg);
  try {
    const { kty, crv, x, y, n, e } = key;
    // Without "use" and "key_ops", which may forbid what only this page does.
    const jwk = Object.fromEntries(
      Object.entries({ kty, crv, x, y, n, e }).filter(([, value]) => value !== undefined),
    );
    const imported = await crypto.subtle.importKey("jwk", jwk, importing, false, ["verify"]);
    const holds = await crypto.subtle.verify(verifying, imported, token.signature, content);
    return report(holds, "Web Cryptography");
  } catch (error) {
    return { says: `Your browser cannot use this key: ${error instanceof Error ? error.message : error}` };
  }
}
