import type { Kysely } from "kysely";
import { describe, expect, it } from "vitest";
import type { Schema } from "../../../src/database/schema.ts";
import { bytesOf } from "../../support/bytes.ts";
import { failureOf, outcomeOf, refusal } from "../../support/refusal.ts";
import { present } from "../answers.ts";
import {
  createKey,
  describeKms,
  type KmsClient,
  type KmsServer,
  readDeeds,
  sign,
  withKey,
} from "./kms-server.ts";
import { signParts } from "./sign-parts.ts";

const data = bytesOf("hello");

/** A key of each kind in use, and a second key of the same kind. */
interface Keys extends Readonly<Record<"signing" | "kem" | "otherSigning" | "otherKem", string>> {
  readonly signature: Uint8Array;
  readonly ciphertext: Uint8Array;
}

type Call = (kms: KmsClient, keys: Keys) => Promise<unknown>;
type Change = (db: Kysely<Schema>, keyId: string, otherKeyId: string) => Promise<unknown>;

/** Calls that need the secret half. */
const secretCalls: Record<string, Call> = {
  Sign: (kms, { signing }) => kms.sign({ keyId: signing, data }),
  SignStream: (kms, { signing }) => kms.signStream(signParts(signing, data)),
  BatchSign: (kms, { signing }) => kms.batchSign({ keyId: signing, data: [data] }),
  Decapsulate: (kms, { kem, ciphertext }) => kms.decapsulate({ keyId: kem, ciphertext }),
};
/** Calls that need only the record. */
const publicCalls: Record<string, Call> = {
  Verify: (kms, { signing, signature }) => kms.verify({ keyId: signing, data, signature }),
  Encapsulate: (kms, { kem }) => kms.encapsulate({ keyId: kem }),
  "GetKey of a signing key": (kms, { signing }) => kms.getKey({ keyId: signing }),
  "GetKey of an ML-KEM key": (kms, { kem }) => kms.getKey({ keyId: kem }),
  "RotateKey of a signing key": (kms, { signing }) => kms.rotateKey({ keyId: signing }),
  "RotateKey of an ML-KEM key": (kms, { kem }) => kms.rotateKey({ keyId: kem }),
};

async function makeKeys(kms: KmsClient, { inUse = false } = {}): Promise<Keys> {
  const make = async (algorithm: string) => (await createKey(kms, { algorithm })).keyId;
  const [otherSigning, signing] = [await make("ML-DSA-44"), await make("ML-DSA-44")];
  const [otherKem, kem] = [await make("ML-KEM-512"), await make("ML-KEM-512")];
  const signature = await sign(kms, { keyId: otherSigning, data });
  const { ciphertext } = present((await kms.encapsulate({ keyId: otherKem })).result);
  const keys = { signing, kem, otherSigning, otherKem, signature, ciphertext };
  const uses = inUse ? [...Object.values(secretCalls), publicCalls.Verify, publicCalls.Encapsulate] : [];
  for (const use of uses) await use?.(kms, keys);
  return keys;
}

/** Tampers with both keys without the service's knowledge. */
function damage({ tamper }: KmsServer, keys: Keys, change: Change): Promise<void> {
  return tamper(async (db) => {
    await change(db, keys.signing, keys.otherSigning);
    await change(db, keys.kem, keys.otherKem);
  });
}

/** Returns the reason for which each call is refused, or that it succeeds. */
async function outcomesOf(kms: KmsClient, keys: Keys, calls: Record<string, Call>) {
  const outcomes: Record<string, string | undefined> = {};
  for (const [name, call] of Object.entries(calls)) outcomes[name] = await outcomeOf(call(kms, keys));
  return outcomes;
}

function allOf(outcome: string, calls: Record<string, Call>): Record<string, string> {
  return Object.fromEntries(Object.keys(calls).map((name) => [name, outcome]));
}

/** Returns the unchanged keys. */
const others = (keys: Keys): Keys => ({ ...keys, signing: keys.otherSigning, kem: keys.otherKem });

/** How a call is refused that needs what was tampered with. */
const damaged = "KEY_DAMAGED";
const everyCall = { ...secretCalls, ...publicCalls };

const record =
  (set: object): Change =>
  (db, keyId) =>
    db.updateTable("kms_keys").set(set).where("key_id", "=", keyId).execute();

/** One change of each kind; test/records/known-tags.test.ts changes every column. */
const recordChanges: [what: string, change: Change][] = [
  ["alias", record({ alias: "mine" })],
  ["algorithm, to an unknown one,", record({ algorithm: "RSA" })],
  ["state", record({ key_state: "ROTATED" })],
  ["state, to an unknown one,", record({ key_state: "LOST" })],
  ["time of creation, to one that no message can carry,", record({ created_at_ms: 9e15 })],
  [
    "public key and tag, to another key's,",
    async (db, keyId, otherKeyId) => {
      const other = db.selectFrom("kms_keys").selectAll().where("key_id", "=", otherKeyId);
      const { public_key, record_tag } = await other.executeTakeFirstOrThrow();
      return record({ public_key, record_tag })(db, keyId, otherKeyId);
    },
  ],
];

const identityOf = (keyId: string) => `kms_keys/${keyId}/secret-key`;

/** Copies records and secret halves of keys, as anyone with access to the database can. */
async function copyKeys(db: Kysely<Schema>, keyIds: readonly string[]) {
  const identities = keyIds.map(identityOf);
  return {
    records: await db.selectFrom("kms_keys").selectAll().where("key_id", "in", keyIds).execute(),
    secrets: await db.selectFrom("sealed_secrets").selectAll().where("identity", "in", identities).execute(),
  };
}

type Copy = Awaited<ReturnType<typeof copyKeys>>;

async function putBack(db: Kysely<Schema>, { records, secrets }: Copy): Promise<void> {
  for (const row of records)
    await db.updateTable("kms_keys").set(row).where("key_id", "=", row.key_id).execute();
  for (const row of secrets) {
    await db.deleteFrom("sealed_secrets").where("identity", "=", row.identity).execute();
    await db.insertInto("sealed_secrets").values(row).execute();
  }
}

describeKms("a key whose record was tampered with", ({ shared }) => {
  describe.each([
    ["before it was used", false],
    ["while it was in use", true],
  ])("%s", (_when, inUse) => {
    it.each(recordChanges)(
      "is rejected by every call that needs it after tampering with its %s",
      async (_what, change) => {
        const server = await shared();
        const keys = await makeKeys(server.kms, { inUse });
        await damage(server, keys, change);
        expect(await outcomesOf(server.kms, keys, everyCall)).toEqual(allOf(damaged, everyCall));
        expect(await outcomesOf(server.kms, others(keys), everyCall)).toEqual(allOf("answer", everyCall));
      },
    );
  });

  it.each(["rotateKey", "destroyKey"] as const)(
    "cannot be revived by restoring its old record and secret half after %s",
    async (retire) => {
      const server = await shared();
      const keys = await makeKeys(server.kms, { inUse: true });
      const retired = [keys.signing, keys.kem];
      const before = await server.tamper((db) => copyKeys(db, retired));
      for (const keyId of retired) await server.kms[retire]({ keyId });
      await server.tamper((db) => putBack(db, before));
      expect(await outcomesOf(server.kms, keys, everyCall)).toEqual(allOf(damaged, everyCall));
      const { keys: listed } = await server.kms.listKeys({});
      const marks = listed.filter(({ keyId }) => retired.includes(keyId)).map((key) => key.damaged);
      expect(marks).toEqual([true, true]);
    },
  );

  it("can be destroyed once more if its old record was restored after destruction", async () => {
    const { kms, tamper, store, keyId } = await withKey(shared());
    const before = await tamper((db) => copyKeys(db, [keyId]));
    await kms.destroyKey({ keyId });
    await tamper((db) => putBack(db, before));
    expect(await kms.destroyKey({ keyId })).toMatchObject({ newStatus: "DESTROYED" });
    expect(await store.readSecret(identityOf(keyId))).toBeUndefined();
    expect(await refusal(kms.destroyKey({ keyId }))).toMatchObject({ reason: "KEY_STATE_INVALID" });
  });

  it("is not used if its creation entry was deleted from the audit log", async () => {
    const { kms, tamper, keyId } = await withKey(shared());
    const rename = (from: string, key_id: string) =>
      tamper((db) => db.updateTable("audit_entries").set({ key_id }).where("key_id", "=", from).execute());
    await rename(keyId, "key-other");
    expect(await refusal(kms.sign({ keyId, data }))).toMatchObject({ reason: "KEY_DAMAGED" });
    await rename("key-other", keyId);
  });

  it("is rejected with a message that names only the key, and has an audit log entry", async () => {
    const { kms, tamper, keyId } = await withKey(shared());
    await tamper((db) => record({ alias: "mine" })(db, keyId, ""));
    const { rawMessage } = await failureOf(kms.sign({ keyId, data }));
    expect(rawMessage).toContain(keyId);
    expect(rawMessage).not.toMatch(/tag|hmac|mine|select|sql|kms_keys/i);
    expect((await readDeeds(kms, keyId)).slice(1)).toEqual(["SIGN REFUSED reason=KEY_DAMAGED"]);
  });

  it.each(recordChanges)(
    "can be destroyed permanently after tampering with its %s",
    async (_what, change) => {
      const server = await shared();
      const keys = await makeKeys(server.kms);
      await damage(server, keys, change);
      for (const keyId of [keys.signing, keys.kem]) {
        expect(await server.kms.destroyKey({ keyId })).toMatchObject({ newStatus: "DESTROYED" });
        expect(await server.store.readSecret(identityOf(keyId))).toBeUndefined();
      }
      expect(Object.values(await outcomesOf(server.kms, keys, secretCalls))).not.toContain("answer");
    },
  );
});

describeKms("a store with a key that was tampered with", ({ start }) => {
  it("still creates and lists keys if its position was set too large", async () => {
    const { kms, tamper, keyId } = await withKey(start());
    await tamper((db) => record({ position: 9_007_199_254_740_991 })(db, keyId, ""));
    const others = [await createKey(kms), await createKey(kms)];
    const { keys } = await kms.listKeys({});
    expect(keys.map((key) => key.keyId)).toEqual([...others.map((key) => key.keyId), keyId]);
  });

  it("still lists and counts its keys after the key, whose state was changed, was destroyed", async () => {
    const { kms, tamper, keyId } = await withKey(start());
    await tamper((db) => record({ key_state: "ROTATED" })(db, keyId, ""));
    await kms.destroyKey({ keyId });
    const lists = ["ACTIVE", "ROTATED", "DESTROYED"].map((status) => kms.listKeys({ status }));
    expect((await Promise.all(lists)).map(({ totalSize }) => totalSize)).toEqual([0, 0, 1]);
  });
});

/** test/access/ownership.test.ts makes other changes, and test/crypto/sealing.test.ts changes every part. */
describeKms("a key whose sealed secret half was deleted", ({ shared }) => {
  it("is rejected by every call that needs the secret half", async () => {
    const server = await shared();
    const keys = await makeKeys(server.kms);
    await damage(server, keys, (db, keyId) =>
      db.deleteFrom("sealed_secrets").where("identity", "=", identityOf(keyId)).execute(),
    );
    expect(await outcomesOf(server.kms, keys, secretCalls)).toEqual(allOf(damaged, secretCalls));
    expect(await outcomesOf(server.kms, keys, publicCalls)).toEqual(allOf("answer", publicCalls));
    expect(await outcomesOf(server.kms, others(keys), everyCall)).toEqual(allOf("answer", everyCall));
  });
});
