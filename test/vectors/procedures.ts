import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Algorithm, algorithms, compositeNames, isMlDsaAlgorithm } from "../../src/crypto/algorithms.ts";
import { decodeBase64url } from "../../src/crypto/base64url.ts";
import { CryptoError } from "../../src/crypto/crypto-error.ts";
import { verifyJwt } from "../../src/crypto/jwt.ts";
import type { CryptoProvider, PublicKey, SecretKeyMaterial } from "../../src/crypto/provider.ts";
import { importPublicJwk } from "../crypto/import-jwk.ts";

/**
 * Result of an official test with a provider:
 *
 * - agrees: the answer equals the expected one.
 * - accepts: the provider accepted a valid public key. The ciphertext is randomized, so only lengths can be compared.
 * - refuses: one of our rules rejects what upstream calls valid, such as a token with a different algorithm.
 * - no interface: `CryptoProvider` has no such operation.
 * - any other text describes the difference.
 */
export type Outcome = "agrees" | "accepts" | "refuses" | "no interface" | `differs: ${string}`;
type Procedure = (provider: CryptoProvider, algorithm: Algorithm, vector: Vector) => Promise<Outcome>;

/** Returns the algorithm of a test: its own, or its file's in our spelling. */
export function algorithmOf(fileAlgorithm: string, vector: Vector): Algorithm {
  const name = String(vector.alg ?? fileAlgorithm).replace("ECDSA-P256-SHA256", "ECDSA-P256");
  return Object.values(algorithms).find((info) => info.name === name)?.name ?? "ML-DSA-65";
}

/** The seed must yield the expected pair, and the expanded key alone the same public key. */
const checkKeyGeneration: Procedure = async (provider, algorithm, vector) => {
  const [publicField, secretField] = "ek" in vector ? ["ek", "dk"] : ["pk", "sk"];
  const fromSeed = await provider.importSecretKey(algorithm, { seed: bytesOf(vector, "seed") });
  const fromRaw = await provider.importSecretKey(algorithm, { raw: bytesOf(vector, secretField) });
  return compare(vector.expect, [
    [fromSeed.publicKey.exportRaw().toHex(), vector[publicField]],
    [fromSeed.exportRaw().toHex(), vector[secretField]],
    [fromRaw.publicKey.exportRaw().toHex(), vector[publicField]],
    [fromRaw.exportRaw().toHex(), vector[secretField]],
  ]);
};

/** SLH-DSA has no seed form; importing the raw key proves that its root is the expected one. */
const checkRawKey: Procedure = async (provider, algorithm, vector) => {
  const secretKey = await provider.importSecretKey(algorithm, { raw: bytesOf(vector, "sk") });
  return compare(vector.expect, [
    [secretKey.publicKey.exportRaw().toHex(), vector.pk],
    [bytesOf(vector, "sk").toHex().startsWith(textOf(vector, "seed")), true],
  ]);
};
const checkVerification: Procedure = async (provider, algorithm, vector) => {
  if (!isPure(vector)) return "no interface";
  const valid = await refusedAs<boolean | string>(false, async () => {
    const material =
      "spki" in vector ? { pem: toPem(textOf(vector, "spki")) } : { raw: bytesOf(vector, "pk") };
    const publicKey = provider.importPublicKey(algorithm, material);
    const signature = bytesOf(vector, "sig");
    const valid = await provider.verify(publicKey, bytesOf(vector, "msg"), signature, optionsOf(vector));
    if (!isMlDsaAlgorithm(algorithm)) return valid;
    const mu = muOf(provider, publicKey, vector);
    if (valid === (await provider.verifyRepresentative(publicKey, mu, signature))) return valid;
    return "our mu disagrees";
  });
  return compare(vector.expect, [[valid, vector.expect]]);
};

/**
 * Signing is hedged, so the expected signature cannot be reproduced. Instead, the test verifies it under the public key
 * derived from the secret key, and likewise a signature of our own; for ML-DSA also one over our own μ.
 */
const checkSigning: Procedure = async (provider, algorithm, vector) => {
  if (!("mu" in vector) && !isPure(vector)) return "no interface";
  const valid = await refusedAs(false, async () => {
    const secretKey = await provider.importSecretKey(algorithm, secretMaterialOf(vector));
    const { publicKey } = secretKey;
    if ("pk" in vector && publicKey.exportRaw().toHex() !== vector.pk) return false;
    const signatures = [bytesOf(vector, "sig")];
    if (isMlDsaAlgorithm(algorithm))
      signatures.push(await provider.signRepresentative(secretKey, muOf(provider, publicKey, vector)));
    if (!("mu" in vector))
      signatures.push(await provider.sign(secretKey, bytesOf(vector, "msg"), optionsOf(vector)));
    const checks = signatures.map((signature) =>
      "mu" in vector
        ? provider.verifyRepresentative(publicKey, bytesOf(vector, "mu"), signature)
        : provider.verify(publicKey, bytesOf(vector, "msg"), signature, optionsOf(vector)),
    );
    return (await Promise.all(checks)).every(Boolean);
  });
  return compare(vector.expect, [[valid, vector.expect]]);
};

const checkEncapsulation: Procedure = async (provider, algorithm, vector) => {
  const lengths = await refusedAs("refused", async () => {
    const publicKey = provider.importPublicKey(algorithm, { raw: bytesOf(vector, "ek") });
    const { ciphertext, sharedSecret } = await provider.encapsulate(publicKey);
    return `${ciphertext.length}/${sharedSecret.length}`;
  });
  if (!vector.expect) return compare(false, [[lengths, "refused"]]);
  const expected = `${bytesOf(vector, "c").length}/${bytesOf(vector, "K").length}`;
  return lengths === expected ? "accepts" : `differs: ${lengths} bytes, expected ${expected}`;
};
const checkDecapsulation: Procedure = async (provider, algorithm, vector) => {
  const sharedSecret = await refusedAs("refused", async () => {
    const secretKey = await provider.importSecretKey(algorithm, secretMaterialOf(vector));
    return (await provider.decapsulate(secretKey, bytesOf(vector, "c"))).toHex();
  });
  return compare(vector.expect, [[sharedSecret, vector.expect ? vector.K : "refused"]]);
};
const checkKey: Procedure = async (provider, algorithm, vector) => {
  const accepted = await refusedAs(false, async () => {
    if ("ek" in vector) provider.importPublicKey(algorithm, { raw: bytesOf(vector, "ek") });
    else await provider.importSecretKey(algorithm, { raw: bytesOf(vector, "dk") });
    return true;
  });
  return compare(vector.expect, [[accepted, vector.expect]]);
};

/** A public key must be exported unchanged, and a secret key in the form that it has. */
const checkPem: Procedure = async (provider, algorithm, vector) => {
  const pem = textOf(vector, "pem");
  if (pem.includes("BEGIN CERTIFICATE")) return "no interface";
  const output = await refusedAs("refused", async () => {
    if (pem.includes("BEGIN PUBLIC KEY")) return provider.importPublicKey(algorithm, { pem }).toPem();
    return (await provider.importSecretKey(algorithm, { pem })).toPem();
  });
  // A document with both forms is written in the seed form, which is a prefix except for the lengths.
  if (vector.comment === "both") return output.length < pem.length ? "agrees" : "differs: not the seed form";
  return compare(vector.expect, [[output.trim(), vector.expect ? pem.trim() : "refused"]]);
};

/** Fields are in base64; the file has some algorithms that we do not support. */
const checkComposite: Procedure = async (provider, _algorithm, vector) => {
  const algorithm = compositeNames.find((name) => vector.id === `id-${name}`);
  if (algorithm === undefined) return "no interface";
  const read = (field: string) => Uint8Array.fromBase64(textOf(vector, field));
  const secretKey = await provider.importSecretKey(algorithm, { der: read("sk_pkcs8") });
  const publicKey = provider.importPublicKey(algorithm, { raw: read("pk") });
  return compare(vector.expect, [
    [secretKey.publicKey.exportRaw().toHex(), publicKey.exportRaw().toHex()],
    [await provider.verify(publicKey, read("m"), read("s")), vector.expect],
  ]);
};
const checkJws: Procedure = async (provider, algorithm, vector) => {
  const { priv, ...jwk } = vector.jwk as Record<string, string>;
  const { keyId, publicKey } = importPublicJwk(provider, jwk);
  const seed = decodeBase64url(priv ?? "") ?? new Uint8Array();
  const secretKey = await provider.importSecretKey(algorithm, { seed });
  const [header, payload, signature = ""] = textOf(vector, "jws").split(".");
  const signingInput = new TextEncoder().encode(`${header}.${payload}`);
  const valid = await provider.verify(
    publicKey,
    signingInput,
    decodeBase64url(signature) ?? new Uint8Array(),
  );
  return compare(vector.expect, [
    [keyId, jwk.kid],
    [secretKey.publicKey.exportRaw().toHex(), publicKey.exportRaw().toHex()],
    [valid, vector.expect],
  ]);
};

/** Every token in these files has an algorithm that must not be confused with ours. */
const checkToken: Procedure = async (provider, _algorithm, vector) => {
  const verification = await verifyJwt(provider, new Map(), textOf(vector, "jws"), new Date(0));
  const reason = verification.ok ? "accepted" : verification.reason;
  if (reason !== "WRONG_ALGORITHM" && reason !== "MALFORMED") return `differs: ${reason}`;
  return vector.expect ? "refuses" : "agrees";
};

/** Returns the μ of a test, or of its message and context as the provider computes it. */
function muOf(provider: CryptoProvider, publicKey: PublicKey, vector: Vector): Uint8Array {
  if ("mu" in vector) return bytesOf(vector, "mu");
  const mu = provider.startRepresentative(publicKey, optionsOf(vector));
  mu.update(bytesOf(vector, "msg"));
  return mu.digest();
}

/** Whether a signature test uses the pure, external interface: no pre-hash, no external μ. */
function isPure(vector: Vector): boolean {
  return (
    vector.interface !== "internal" &&
    vector.preHash !== "preHash" &&
    !("hashAlg" in vector) &&
    !("mu" in vector)
  );
}

function secretMaterialOf(vector: Vector): SecretKeyMaterial {
  if ("seed" in vector) return { seed: bytesOf(vector, "seed") };
  return { raw: bytesOf(vector, "dk" in vector ? "dk" : "sk") };
}

function optionsOf(vector: Vector) {
  if (vector.enc !== undefined)
    return { ecdsaEncoding: vector.enc === "der" ? "der" : "ieee-p1363" } as const;
  return "ctx" in vector ? { context: bytesOf(vector, "ctx") } : {};
}

function toPem(spkiHex: string): string {
  return `-----BEGIN PUBLIC KEY-----\n${Uint8Array.fromHex(spkiHex).toBase64()}\n-----END PUBLIC KEY-----\n`;
}

/** Returns `refusal` if the provider rejects the input; other errors are failures. */
async function refusedAs<Answer>(refusal: Answer, attempt: () => Promise<Answer>): Promise<Answer> {
  try {
    return await attempt();
  } catch (error) {
    if (error instanceof CryptoError && ["INVALID_KEY", "INVALID_ARGUMENT"].includes(error.code))
      return refusal;
    throw error;
  }
}

function compare(
  expect: boolean,
  pairs: readonly (readonly [actual: unknown, expected: unknown])[],
): Outcome {
  const difference = pairs.find(([actual, expected]) => actual !== expected);
  if (difference === undefined) return "agrees";
  const [actual, expected] = difference.map((value) => String(value).slice(0, 40));
  return `differs: ${actual}, expected ${expected} (${expect ? "valid" : "invalid"} test)`;
}

const noInterface: Procedure = async () => "no interface";

/** How to run a test, by the operation of its file. */
export const procedures: Readonly<Record<string, Procedure>> = {
  keyGen: checkKeyGeneration,
  "slh-keyGen": checkRawKey,
  sigVer: checkVerification,
  "sigVer-acvp": checkVerification,
  "sigGen-acvp": checkSigning,
  "sigGen-seed": checkSigning,
  "sigGen-sk": checkSigning,
  "slh-sigGen": checkSigning,
  encap: checkEncapsulation,
  "decap-dk": checkDecapsulation,
  "decap-seed": checkDecapsulation,
  cctv: (provider, algorithm, { id, expect, raw }) =>
    checkDecapsulation(provider, algorithm, { ...(raw as object), id, expect }),
  "ek-check": checkKey,
  "dk-check": checkKey,
  "pem-import": checkPem,
  jws: checkJws,
  "slh-sigVer-internal": noInterface,
  "composite-sigVer": checkComposite,
  aead: noInterface,
  keywrap: noInterface,
  kdf: noInterface,
  "wycheproof-jose": checkToken,
};

/** One official test: the expected result, and fields with hex, text or flags that its operation defines. */
export type Vector = Readonly<Record<string, unknown>> & { readonly id: string; readonly expect: boolean };

interface VectorFile {
  /** Such as "ML-DSA-65"; a test of a mixed file names its own in `alg`. */
  readonly algorithm: string;
  /** The operation under test, such as "sigVer"; a key of `procedures`. */
  readonly operation: string;
  readonly vectors: readonly Vector[];
}

/** Folder of the official vectors, which are not in the repository; undefined if unset. */
export const vectorsFolder = process.env.QSP_TEST_VECTORS || undefined;

/** Its files. */
export const vectorFiles: readonly string[] = vectorsFolder
  ? readdirSync(vectorsFolder).filter((name) => name.endsWith(".json"))
  : ["every file"];

/**
 * Reads one file: the normalised form `pqvec/1`, or Wycheproof's upstream form, which has tests in groups.
 */
export function readVectorFile(folder: string, name: string): VectorFile {
  const file = JSON.parse(readFileSync(join(folder, name), "utf8"));
  if (file.format === "pqvec/1")
    return { algorithm: file.algorithm, operation: file.operation, vectors: file.tests };
  const tests: { tcId: number; result: string }[] = file.testGroups.flatMap(
    (group: { tests: [] }) => group.tests,
  );
  const vectors = tests.map((test) => ({ ...test, id: String(test.tcId), expect: test.result === "valid" }));
  return { algorithm: "JOSE", operation: "wycheproof-jose", vectors };
}

/** Reads a hex field; a missing one is an error in the test or the file. */
function bytesOf(vector: Vector, field: string): Uint8Array {
  return Uint8Array.fromHex(textOf(vector, field));
}

function textOf(vector: Vector, field: string): string {
  const value = vector[field];
  if (typeof value !== "string") throw new TypeError(`${vector.id} has no ${field}`);
  return value;
}
