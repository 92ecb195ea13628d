/** Composite keys, made of an engine's ML-DSA key and a classical key of node:crypto. */
import { createPrivateKey, createPublicKey, generateKeyPair, type KeyObject } from "node:crypto";
import { promisify } from "node:util";
import {
  type Algorithm,
  type ClassicalAlgorithm,
  type CompositeAlgorithm,
  compositeHalves,
  isCompositeAlgorithm,
} from "./algorithms.ts";
import { wipe } from "./bytes.ts";
import { labelOf, represent, secretKeyShape, splitPublicKey, splitSignature } from "./composite.ts";
import { invalidKey } from "./crypto-error.ts";
import { matchShape, renderShape } from "./der.ts";
import { checkPointForm, checkScalar } from "./ecdsa.ts";
import type {
  CheckedSignatureOptions,
  Engine,
  LibraryPublicKey,
  LibrarySecretKey,
  SecretKeyForm,
} from "./engine.ts";
import { plainBytes, sign, verify } from "./openssl/thread-pool.ts";

/** Adds composites to an engine. Both halves of an operation run at the same time, off the event loop. */
export function addComposites(inner: Engine): Engine<Algorithm> {
  return {
    ...inner,
    generateKeyPair: (algorithm) =>
      isCompositeAlgorithm(algorithm) ? generate(inner, algorithm) : inner.generateKeyPair(algorithm),
    importPublicKey: (algorithm, raw) =>
      isCompositeAlgorithm(algorithm)
        ? importPublicKey(inner, algorithm, raw)
        : inner.importPublicKey(algorithm, raw),
    importSecretKey: (algorithm, form) =>
      isCompositeAlgorithm(algorithm)
        ? importSecretKey(inner, algorithm, form)
        : inner.importSecretKey(algorithm, form),
  };
}

const classicalKinds = {
  Ed25519: { type: { asymmetricKeyType: "ed25519" }, digest: null },
  "ECDSA-P256": { type: { asymmetricKeyType: "ec", namedCurve: "P-256" }, digest: "sha256" },
  "ECDSA-P384": { type: { asymmetricKeyType: "ec", namedCurve: "P-384" }, digest: "sha384" },
} as const;

async function generateClassical(classical: ClassicalAlgorithm): Promise<KeyObject> {
  const { type } = classicalKinds[classical];
  const pair =
    type.asymmetricKeyType === "ec"
      ? await promisify(generateKeyPair)("ec", { namedCurve: type.namedCurve })
      : await promisify(generateKeyPair)("ed25519");
  return pair.privateKey;
}

/** Section 3.1: two new keys. */
async function generate(inner: Engine, algorithm: CompositeAlgorithm): Promise<LibrarySecretKey> {
  const { mlDsa, classical } = compositeHalves[algorithm];
  const [first, second] = await Promise.all([inner.generateKeyPair(mlDsa), generateClassical(classical)]);
  return openSecretKey(algorithm, first, second);
}

function importPublicKey(inner: Engine, algorithm: CompositeAlgorithm, raw: Uint8Array): LibraryPublicKey {
  const { mlDsa, classical } = compositeHalves[algorithm];
  const halves = splitPublicKey(algorithm, raw);
  if (classical !== "Ed25519") checkPointForm(classical, halves.classical);
  return openPublicKey(
    algorithm,
    inner.importPublicKey(mlDsa, halves.mlDsa),
    parseHalf(algorithm, () =>
      createPublicKey({ key: halves.classical, format: "raw-public", ...classicalKinds[classical].type }),
    ),
  );
}

async function importSecretKey(
  inner: Engine,
  algorithm: CompositeAlgorithm,
  form: SecretKeyForm,
): Promise<LibrarySecretKey> {
  const { mlDsa, classical } = compositeHalves[algorithm];
  const { seed, raw } =
    (form.kind === "seed" ? undefined : matchShape(secretKeyShape(algorithm), form.raw)) ?? {};
  if (seed === undefined || raw === undefined)
    throw invalidKey(
      `the ${algorithm} secret key must be an ML-DSA seed and an ECPrivateKey with the curve and without the public key`,
    );
  if (classical !== "Ed25519") checkScalar(classical, raw);
  const second = parseHalf(algorithm, () =>
    createPrivateKey({ key: raw, format: "raw-private", ...classicalKinds[classical].type }),
  );
  return openSecretKey(algorithm, await inner.importSecretKey(mlDsa, { kind: "seed", seed }), second);
}

function parseHalf(algorithm: CompositeAlgorithm, parse: () => KeyObject): KeyObject {
  try {
    return parse();
  } catch {
    throw invalidKey(`OpenSSL rejects the classical half of the ${algorithm} key`);
  }
}

function openPublicKey(
  algorithm: CompositeAlgorithm,
  first: LibraryPublicKey,
  second: KeyObject,
): LibraryPublicKey {
  const context = labelOf(algorithm);
  const { digest } = classicalKinds[compositeHalves[algorithm].classical];
  /** Section 3.3, step 4. Both halves are verified, so that the time does not depend on the first. */
  const verifyRepresentative = async (
    representative: Uint8Array,
    signature: Uint8Array,
  ): Promise<boolean> => {
    const halves = splitSignature(algorithm, signature);
    const valid = await Promise.all([
      first.verify(representative, halves.mlDsa, { ...options, context }),
      verify(digest, representative, { key: second, dsaEncoding: "der" }, halves.classical),
    ]);
    return valid.every((isValid) => isValid);
  };
  return {
    exportRaw: () => concat(first.exportRaw(), second.export({ format: "raw-public" })),
    verify: (message, signature, given) =>
      verifyRepresentative(represent(algorithm, message, given.context), signature),
    verifyRepresentative,
    encapsulate: refuseKem,
  };
}

function openSecretKey(
  algorithm: CompositeAlgorithm,
  first: LibrarySecretKey,
  second: KeyObject,
): LibrarySecretKey {
  const context = labelOf(algorithm);
  const { digest } = classicalKinds[compositeHalves[algorithm].classical];
  /** Section 3.2, steps 4 to 6. */
  const signRepresentative = async (representative: Uint8Array): Promise<Uint8Array> => {
    const halves = await Promise.all([
      first.sign(representative, { ...options, context }),
      sign(digest, representative, { key: second, dsaEncoding: "der" }),
    ]);
    return concat(...halves);
  };
  return {
    publicKey: openPublicKey(algorithm, first.publicKey, createPublicKey(second)),
    exportRaw() {
      const [seed, raw] = [first.exportSeed(), second.export({ format: "raw-private" })];
      try {
        // Generated and imported keys have a seed.
        return renderShape(secretKeyShape(algorithm), { ...(seed && { seed }), raw });
      } finally {
        wipe(seed, raw);
      }
    },
    exportSeed: () => undefined,
    // OpenSSL wipes the classical half once the last KeyObject that refers to it is garbage-collected.
    erase: () => first.erase(),
    sign: (message, given) => signRepresentative(represent(algorithm, message, given.context)),
    signRepresentative,
    decapsulate: refuseKem,
  };
}

const options: CheckedSignatureOptions = { context: undefined, ecdsaEncoding: "der" };

/** `CheckedProvider` never encapsulates or decapsulates with signature keys. */
async function refuseKem(): Promise<never> {
  throw new RangeError("composite keys cannot encapsulate or decapsulate");
}

function concat(...parts: readonly Uint8Array[]): Uint8Array {
  return plainBytes(Buffer.concat(parts));
}
