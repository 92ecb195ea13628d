/** Encrypted data: sealed in the browser with a public key, opened by the key service, moved to a new key. */
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { type EncryptionAlgorithm, encryptForKey } from "../../../../src/client/encrypt.ts";
import { reportEqual, reportServer, sayExpected } from "../../checks.ts";
import { expectRefusal } from "../../failure.ts";
import { attack, find, judge, refuse, send, withSize } from "../../parts/diagrams/sequence.ts";
import { bytes, change, checks, code, evidence, facts, hint, refused } from "../../parts/show.tsx";
import { choiceField, textField } from "../../parts/step-fields.tsx";
import { defineStory } from "../../story.tsx";
import { step } from "../../story-step.ts";
import { areEqual, changeByte, formatBytes, showUtf8, toUtf8 } from "../../values.ts";

const { createKey, decrypt, destroyKey, encrypt, getKey, reEncrypt, rotateKey } = KmsService.method;
const [you, mallory, server] = [0, 1, 2];
/** What every ciphertext here is bound to. */
const patient = toUtf8("patient 4711");

const record = textField("Record", "blood type: 0+");

export const creating = step({
  title: "Create a key that encrypts",
  action: "Create a key",
  why: `The key service keeps the secret key. Anyone may have the public key: with it, data can be encrypted but
    not decrypted. X-Wing combines ML-KEM-768 with X25519, so the data stays safe if one of them is broken.`,
  fields: {
    algorithm: choiceField("Algorithm", "X-Wing", ["X-Wing", "ML-KEM-768", "ML-KEM-1024"]),
  },
  run: async ({ call }, { algorithm }) => {
    const created = await call(createKey, { alias: "patient records", algorithm, usage: "ENCRYPT" });
    const { result } = await call(getKey, { keyId: created.result?.keyId ?? "" });
    if (result?.publicKey === undefined) throw new Error("the server sent no public key");
    return { keyId: result.keyId, algorithm, publicKey: result.publicKey };
  },
  says: ({ publicKey }) => `The key exists; its public key has ${formatBytes(publicKey.length)}.`,
  shows: ({ keyId, algorithm, publicKey }) => [
    facts({ "Key ID": code(keyId) }),
    evidence("Public key", bytes("Public key", publicKey, algorithm)),
  ],
  draws: (value) => [
    send(you, server, "create a key"),
    find(server, "secret key, which stays here"),
    send(server, you, withSize("public key", value?.publicKey)),
  ],
});

export const sealing = step({
  title: "Your browser encrypts, without the server",
  action: "Encrypt here",
  why: `HPKE (RFC 9180) encapsulates a fresh secret to the public key and encrypts with AES-256-GCM. The associated
    data “patient 4711” is not encrypted, but the ciphertext is bound to it. No call is made.`,
  fields: { record },
  after: { creating },
  run: async (_caller, { creating: { keyId, algorithm, publicKey }, record: text }) => {
    const plaintext = toUtf8(text);
    const ciphertext = await encryptForKey({
      keyId,
      // The choice of the first step.
      algorithm: algorithm as EncryptionAlgorithm,
      publicKey,
      plaintext,
      associatedData: patient,
    });
    return { plaintext, ciphertext };
  },
  says: ({ plaintext, ciphertext }) =>
    `${formatBytes(plaintext.length)} became ${formatBytes(ciphertext.length)}.`,
  shows: ({ plaintext, ciphertext }) => [
    bytes("Ciphertext: version, key ID, encapsulated key, data and tag", ciphertext),
    hint(`${formatBytes(ciphertext.length - plaintext.length)} are overhead, however long the data is.`),
  ],
  draws: (value) => [find(you, withSize("ciphertext", value?.ciphertext))],
});

export const opening = step({
  title: "The key service decrypts",
  action: "Decrypt",
  why: `The ciphertext names its key. The server checks that you may use it, decrypts, and records the use in the
    audit log before it answers.`,
  after: { sealing },
  run: async ({ call }, { sealing: { plaintext, ciphertext } }) => {
    const { result } = await call(decrypt, { ciphertext, associatedData: patient });
    const opened = result?.plaintext ?? new Uint8Array();
    return { opened, isSame: areEqual(opened, plaintext) };
  },
  says: ({ opened, isSame }) =>
    sayExpected(isSame, `The server returns “${showUtf8(opened)}”.`, "The server returns different data"),
  shows: ({ isSame }) => checks(reportEqual("the decrypted data, compared with yours", isSame)),
  draws: (value) => [
    send(you, server, "ciphertext"),
    send(server, you, "plaintext", judge(value?.isSame, "equal", "different")),
  ],
});

export const tampering = step({
  title: "Ciphertexts are changed and swapped",
  action: "Try three attacks",
  why: `An attacker changes a byte of the data, changes a byte of the encapsulated key, and presents the ciphertext
    as another patient's. The answers are alike, so they reveal nothing about the key.`,
  after: { sealing },
  run: async ({ call }, { sealing: { ciphertext } }) => {
    const data = changeByte(ciphertext, ciphertext.length - 20);
    const key = changeByte(ciphertext, 100);
    const attempt = (bytes: Uint8Array, associatedData: Uint8Array) =>
      expectRefusal(call(decrypt, { ciphertext: bytes, associatedData }), "DECRYPTION_FAILED");
    const refusals = [
      await attempt(data.after, patient),
      await attempt(key.after, patient),
      await attempt(ciphertext, toUtf8("patient 4712")),
    ] as const;
    return { data, refusals, isAlike: new Set(refusals.map(({ message }) => message)).size === 1 };
  },
  says: ({ refusals: [{ reason }], isAlike }) =>
    sayExpected(isAlike, `Each is refused with the same words: ${reason}.`, "The answers differ"),
  shows: ({ data, refusals: [refusal], isAlike }) => [
    change(data),
    refused(refusal),
    checks(reportEqual("the three answers", isAlike)),
  ],
  draws: (value) => [
    attack(mallory, server, "one byte of the data changed", refuse(value?.refusals[0].reason)),
    attack(mallory, server, "one byte of the encapsulated key changed", refuse(value?.refusals[1].reason)),
    attack(mallory, server, "for another patient", refuse(value?.refusals[2].reason)),
  ],
});

export const moving = step({
  title: "Rotate the key, and move the data",
  action: "Rotate and re-encrypt",
  why: `A rotated key still decrypts, but encrypts nothing new. ReEncrypt moves data to the new key inside the
    server: the plaintext never leaves it.`,
  after: { creating, sealing },
  ends: [sealing],
  run: async ({ call }, { creating: { keyId }, sealing: { ciphertext } }) => {
    const { newKey } = await call(rotateKey, { keyId });
    const refusal = await expectRefusal(call(encrypt, { keyId, plaintext: patient }), "KEY_STATE_INVALID");
    const moved = await call(reEncrypt, { ciphertext, associatedData: patient, keyId: newKey?.keyId ?? "" });
    return {
      newKeyId: newKey?.keyId ?? "",
      refusal,
      ciphertext: moved.result?.ciphertext ?? new Uint8Array(),
    };
  },
  says: ({ newKeyId }) => `The data is now under ${newKeyId}.`,
  shows: ({ ciphertext, refusal }) => [bytes("New ciphertext", ciphertext), refused(refusal)],
  draws: (value) => [
    send(you, server, "re-encrypt this ciphertext"),
    find(server, "decrypts and encrypts again"),
    send(server, you, withSize("new ciphertext", value?.ciphertext)),
  ],
});

export const forgetting = step({
  title: "Destroy the old key",
  action: "Destroy",
  why: "Whatever is still encrypted under it is lost, for its owner and for every thief. The moved data is not.",
  after: { creating, sealing, moving },
  ends: [opening, tampering],
  run: async ({ call }, { creating: { keyId }, sealing: { plaintext, ciphertext }, moving: moved }) => {
    await call(destroyKey, { keyId });
    const refusal = await expectRefusal(
      call(decrypt, { ciphertext, associatedData: patient }),
      "KEY_STATE_INVALID",
    );
    const { result } = await call(decrypt, { ciphertext: moved.ciphertext, associatedData: patient });
    return { refusal, isSame: areEqual(result?.plaintext ?? new Uint8Array(), plaintext) };
  },
  says: ({ refusal, isSame }) =>
    sayExpected(
      isSame,
      `The old ciphertext is lost: ${refusal.reason}. The new one still decrypts.`,
      "The moved data does not decrypt",
    ),
  shows: ({ refusal, isSame }) => [
    refused(refusal),
    checks(reportServer("the moved data", isSame, isSame ? "decrypts" : "lost")),
  ],
  draws: (value) => [
    send(you, server, "the old ciphertext", refuse(value?.refusal.reason)),
    send(you, server, "the new ciphertext", judge(value?.isSame, "decrypts", "lost")),
  ],
});

export const Page = defineStory({
  title: "Encryption",
  lead: `Small data, such as a record or a data key, is encrypted to a key that only the key service can use. Your
    browser needs no call for it; decryption is checked, and recorded in the audit log.`,
  parties: [{ name: "Your browser" }, { name: "Mallory", isAttacker: true }, { name: "Key service" }],
  steps: [creating, sealing, opening, tampering, moving, forgetting],
});
