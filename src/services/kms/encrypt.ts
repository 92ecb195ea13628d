/** Encryption of small data with stored keys; encryption-head.ts describes the ciphertext. */
import { wipe } from "../../crypto/bytes.ts";
import { CryptoError } from "../../crypto/crypto-error.ts";
import { headBytes, readHead } from "../../crypto/encryption-head.ts";
import { minSealedBytes } from "../../crypto/hpke.ts";
import { type BoundData, decryptData, encryptData } from "../../crypto/key-encryption.ts";
import { refuse, refuseField } from "../../errors.ts";
import { beginAttempt, type KeyInput, recordingRefusal } from "./attempt.ts";
import { eventBy, subjectOf } from "./event.ts";
import { findOwner, forgetHandle } from "./find-key.ts";
import { parseHandle } from "./handle.ts";
import type { CachedKey } from "./key-cache.ts";
import type { SignDeps } from "./sign.ts";
import {
  findUsable,
  maxAttempts,
  recordUse,
  type Use,
  type UsedKey,
  unlessErased,
  useKey,
} from "./use-key.ts";

/** Maximum bytes of a plaintext, as in the rules of EncryptRequest. */
const maxPlaintextBytes = 65_536;

const encrypting: Use = { operation: "ENCRYPT", states: ["ACTIVE"], usage: "ENCRYPT" };
/** A rotated key still decrypts what it encrypted. */
const decrypting: Use = { operation: "DECRYPT", states: ["ACTIVE", "ROTATED"], usage: "ENCRYPT" };

/**
 * Encrypts data with a stored key.
 *
 * @throws the errors of `useKey`
 */
export function encrypt(
  deps: SignDeps,
  { data, associatedData, ...who }: KeyInput & BoundData,
): Promise<UsedKey & { readonly ciphertext: Uint8Array }> {
  return useKey(deps, who, encrypting, async (key) => {
    const ciphertext = await seal(deps, key, { data, associatedData });
    return { result: { ciphertext }, details: [describe(key)] };
  });
}

/**
 * Decrypts a ciphertext with the stored key that it belongs to.
 *
 * @param input.handle the key that it must belong to, or ""
 * @throws the errors of `useKey`; FIELD_INVALID for a ciphertext without a key, or for a different key;
 *   DECRYPTION_FAILED
 */
export function decrypt(
  deps: SignDeps,
  { data, associatedData, handle: expected, ...who }: KeyInput & BoundData,
): Promise<UsedKey & { readonly plaintext: Uint8Array }> {
  const handle = readKeyId(data);
  return useKey(deps, { ...who, handle }, decrypting, async (key) => {
    if (expected !== "") await requireSameKey(deps, key, { ...who, handle: expected });
    const plaintext = await open(deps, key, { data, associatedData });
    return { result: { plaintext }, details: [describe(key)] };
  });
}

/**
 * Decrypts a ciphertext, and encrypts the plaintext with a different key, or a newer version of the same name.
 * Either both uses are recorded in one transaction, or neither: see useKey for the loop.
 *
 * @param input.handle the new key
 * @throws the errors of `encrypt` and `decrypt`
 */
export async function reEncrypt(
  deps: SignDeps,
  { data, associatedData, ...who }: KeyInput & BoundData,
): Promise<UsedKey & { readonly ciphertext: Uint8Array; readonly sourceKeyId: string }> {
  const { principal, signal } = who;
  const operation = "RE_ENCRYPT";
  const from = { ...beginAttempt(operation, { ...who, handle: readKeyId(data) }), needs: "DECRYPT" } as const;
  const to = { ...beginAttempt(operation, who), needs: "ENCRYPT" } as const;
  for (let attempts = 1; ; attempts += 1) {
    const source = await recordingRefusal(deps, from, () =>
      findUsable(deps, from, { ...decrypting, operation }),
    );
    const target = await recordingRefusal(deps, to, () => findUsable(deps, to, { ...encrypting, operation }));
    const mayBeginAgain = attempts < maxAttempts && !signal.aborted;
    const ciphertext = await recordingRefusal(deps, from, () =>
      unlessErased(convert(deps, source.key, target.key, { data, associatedData }), mayBeginAgain),
    );
    if (ciphertext === undefined) continue;
    signal.throwIfAborted();
    const [sourceId, targetId] = [source.key.record.keyId, target.key.record.keyId];
    const uses = [
      { used: source, details: `${describe(source.key)}, targetKeyId=${targetId}` },
      { used: target, details: `${describe(target.key)}, sourceKeyId=${sourceId}` },
    ];
    const isRecorded = await recordUse(deps, operation, {
      keys: uses.map(({ used: { key, grant } }) => ({ keyId: key.record.keyId, tag: key.tag, grant })),
      events: uses.map(({ used, details }) =>
        eventBy(principal, subjectOf(used.key.record), { operation, outcome: "OK", details }),
      ),
    });
    if (isRecorded)
      return { ciphertext, keyId: targetId, algorithm: target.key.record.algorithm, sourceKeyId: sourceId };
    for (const keyId of [sourceId, targetId]) deps.cache.forget(keyId);
    forgetHandle(deps, to);
  }
}

async function convert(
  deps: SignDeps,
  source: CachedKey,
  target: CachedKey,
  { data, associatedData }: BoundData,
): Promise<Uint8Array> {
  const plaintext = await open(deps, source, { data, associatedData });
  try {
    return await seal(deps, target, { data: plaintext, associatedData });
  } finally {
    wipe(plaintext);
  }
}

function seal({ provider }: SignDeps, key: CachedKey, bound: BoundData): Promise<Uint8Array> {
  return encryptData(provider, { keyId: key.record.keyId, publicKey: key.publicKey() }, bound);
}

/** @throws DECRYPTION_FAILED; FIELD_INVALID for a ciphertext that is too long for the algorithm */
async function open({ provider }: SignDeps, key: CachedKey, bound: BoundData): Promise<Uint8Array> {
  const { algorithm } = key.record;
  const minBytes = headBytes + minSealedBytes(algorithm);
  const maxBytes = minBytes + maxPlaintextBytes;
  // A holder of the public key may have encrypted more.
  if (bound.data.length > maxBytes)
    throw refuseField(
      "ciphertext",
      `is ${bound.data.length} bytes; ${algorithm} ciphertexts have ${minBytes} to ${maxBytes}`,
    );
  try {
    return await decryptData(provider, await key.secretKey(), bound);
  } catch (error) {
    if (!(error instanceof CryptoError && error.code === "UNWRAP_FAILED")) throw error;
    throw refuse(
      "DECRYPTION_FAILED",
      "the ciphertext does not decrypt: it was changed, or encrypted with different associatedData, or with the public key of a different key; send both as they were",
    );
  }
}

/**
 * Reads the ID of the key that a ciphertext names.
 *
 * @throws FIELD_INVALID
 */
function readKeyId(ciphertext: Uint8Array): string {
  const keyId = readHead(ciphertext);
  if (keyId !== undefined) return keyId;
  throw refuseField(
    "ciphertext",
    `has the first byte ${ciphertext[0]}; a ciphertext from Encrypt begins with 1`,
  );
}

function describe({ record }: CachedKey): string {
  return `algorithm=${record.algorithm}`;
}

/**
 * Checks that a handle resolves to a key: by its ID, its name, or the version of the name.
 *
 * @throws FIELD_INVALID
 */
async function requireSameKey(
  deps: SignDeps,
  { record: { keyId, owner, name, version } }: CachedKey,
  { handle, principal }: KeyInput,
): Promise<void> {
  const parsed = parseHandle(handle);
  const isSame =
    parsed.kind === "id"
      ? parsed.keyId === keyId
      : parsed.name === name &&
        (parsed.version ?? version) === version &&
        (await findOwner(deps, parsed, principal)) === owner;
  if (!isSame) throw refuseField("keyId", `is not the key of the ciphertext; omit keyId or send ${keyId}`);
}
