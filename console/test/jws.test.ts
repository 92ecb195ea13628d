import { generateKeyPairSync, sign } from "node:crypto";
import { describe, expect, it } from "vitest";
import { readToken } from "../page/jwt.ts";
import { readKeySet, verifyJws } from "../page/views/token-inspector/verify-jws.ts";

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");

const generators = {
  ES256: () => generateKeyPairSync("ec", { namedCurve: "P-256" }),
  RS256: () => generateKeyPairSync("rsa", { modulusLength: 2048 }),
  EdDSA: () => generateKeyPairSync("ed25519"),
  "ML-DSA-44": () => generateKeyPairSync("ml-dsa-44"),
} as const;

/** A token and its key, made by node:crypto. */
function makeToken(alg: keyof typeof generators, header: object = {}) {
  const { privateKey, publicKey } = generators[alg]();
  const text = `${encode({ alg, ...header })}.${encode({ sub: "ada" })}`;
  const digest = /^[ER]S/.test(alg) ? "sha256" : null;
  const signature = sign(digest, Buffer.from(text), { key: privateKey, dsaEncoding: "ieee-p1363" });
  return { token: `${text}.${signature.toString("base64url")}`, jwk: publicKey.export({ format: "jwk" }) };
}

describe("the token inspector", () => {
  const algorithms = Object.keys(generators) as (keyof typeof generators)[];
  it.each(algorithms)("verifies %s with a pasted key set", async (alg) => {
    const { token, jwk } = makeToken(alg, { kid: "one" });
    const set = [
      { ...makeToken(alg).jwk, kid: "two" },
      { ...jwk, kid: "one" },
    ];
    const keys = readKeySet(JSON.stringify({ keys: set }));
    const says = expect.stringMatching(/^Valid for key one, by /);
    expect(await verifyJws(readToken(token), keys)).toMatchObject({ holds: true, says });
    const [header, , signature] = token.split(".");
    const forged = readToken([header, encode({ sub: "mallory" }), signature].join("."));
    expect(await verifyJws(forged, keys)).toMatchObject({ holds: false });
  });

  it("tries each key for a token without a key ID", async () => {
    const { token, jwk } = makeToken("EdDSA");
    const keys = readKeySet(JSON.stringify({ keys: [makeToken("EdDSA").jwk, jwk] }));
    expect(await verifyJws(readToken(token), keys)).toMatchObject({ holds: true });
  });

  it("lets the key limit the algorithm, and accepts no missing signature", async () => {
    const { token, jwk } = makeToken("RS256");
    const keys = readKeySet(JSON.stringify({ ...jwk, alg: "PS256" }));
    expect(await verifyJws(readToken(token), keys)).toEqual({ says: "The set has no key for RS256." });
    const unsigned = readToken(`${encode({ alg: "none" })}.${encode({})}.`);
    expect(await verifyJws(unsigned, keys)).toMatchObject({ holds: false });
  });

  it.each(["null", "[]", "5"])("takes %s for no header and no payload", (text) => {
    const part = Buffer.from(text).toString("base64url");
    expect(() => readToken(`${encode({})}.${part}.`)).toThrow("not a JSON object");
    expect(() => readToken(`${part}.${encode({})}.`)).toThrow("not a JSON object");
  });

  it.each(["[]", '{"keys":1}', '{"keys":[{}]}', "null"])("refuses the key set %s", (text) => {
    expect(() => readKeySet(text)).toThrow("JWK set");
  });
});
