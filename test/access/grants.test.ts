/** Grants: access to another user's key, for some operations, until they end. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, it, vi } from "vitest";
import type { SignStreamRequestSchema } from "#gen/kms/kms_service_pb.ts";
import { present } from "../services/answers.ts";
import { bytesOf, flipBit } from "../support/bytes.ts";
import { failureOf, refusal } from "../support/refusal.ts";
import { describeAccess, makePeople, type Person } from "./access-server.ts";

const data = bytesOf("hello");
const notFound = { code: "NotFound", reason: "KEY_NOT_FOUND" };
const missing = { code: "PermissionDenied", reason: "GRANT_MISSING" };
const grantNotFound = { code: "NotFound", reason: "GRANT_NOT_FOUND" };
const invalid = (field: string) => ({ code: "InvalidArgument", reason: "FIELD_INVALID", fields: [field] });

let names = 0;

async function makeKey({ kms }: Person, fields: object = {}) {
  names += 1;
  return present((await kms.createKey({ algorithm: "ML-DSA-44", name: `key-${names}`, ...fields })).result);
}

async function grant({ kms }: Person, keyId: string, to: Person, operations: string[], fields: object = {}) {
  return present((await kms.createGrant({ keyId, grantee: to.name, operations, ...fields })).grant);
}

type Use = (kms: Person["kms"], keyId: string) => Promise<unknown>;

/** What a grantee may do with a key, by operation name. */
const uses: Record<string, Use> = {
  GET_KEY: (kms, keyId) => kms.getKey({ keyId }),
  SIGN: (kms, keyId) => kms.sign({ keyId, data }),
  VERIFY: (kms, keyId) => kms.verify({ keyId, data, signature: new Uint8Array(2420) }),
};

/** What no grant allows. */
const changes: Record<string, Use> = {
  RotateKey: (kms, keyId) => kms.rotateKey({ keyId }),
  DisableKey: (kms, keyId) => kms.disableKey({ keyId }),
  EnableKey: (kms, keyId) => kms.enableKey({ keyId }),
  RestoreKey: (kms, keyId) => kms.restoreKey({ keyId }),
  DestroyKey: (kms, keyId) => kms.destroyKey({ keyId }),
  "DestroyKey after a minute": (kms, keyId) => kms.destroyKey({ keyId, afterSeconds: 60 }),
  CreateGrant: (kms, keyId) => kms.createGrant({ keyId, grantee: "nobody", operations: ["SIGN"] }),
};

const createCsr: Use = (kms, keyId) => kms.createCsr({ keyId, subject: "CN=release" });
const batchSign: Use = (kms, keyId) => kms.batchSign({ keyId, data: [data] });
const signStream: Use = (kms, keyId) => kms.signStream(sendChunks(keyId));

async function* sendChunks(keyId: string): AsyncGenerator<MessageInitShape<typeof SignStreamRequestSchema>> {
  yield { part: { case: "header", value: { keyId } } };
  yield { part: { case: "chunk", value: data } };
}

/** The message of a refusal. */
async function findMessage(call: Promise<unknown>): Promise<string> {
  return (await failureOf(call)).rawMessage;
}

describeAccess("a grant", (shared) => {
  it.each(Object.keys(uses))("of %s allows only this operation", async (granted) => {
    const server = await shared();
    const [owner, grantee, other] = await makePeople(server);
    const { keyId } = await makeKey(owner);
    await grant(owner, keyId, grantee, [granted]);
    for (const [operation, use] of Object.entries(uses)) {
      if (operation === granted) await use(grantee.kms, keyId);
      else expect(await refusal(use(grantee.kms, keyId))).toEqual(missing);
      expect(await refusal(use(other.kms, keyId))).toEqual(notFound);
    }
    for (const change of Object.values(changes)) {
      expect(await refusal(change(grantee.kms, keyId))).toEqual(missing);
      expect(await refusal(change(other.kms, keyId))).toEqual(notFound);
    }
  });

  it("of SIGN allows a CSR, and a grant of other operations does not", async () => {
    const server = await shared();
    const [owner, grantee] = await makePeople(server);
    const { keyId } = await makeKey(owner);
    const request = { keyId, subject: "CN=release" };
    await grant(owner, keyId, grantee, ["VERIFY", "GET_KEY"]);
    expect(await refusal(grantee.kms.createCsr(request))).toEqual(missing);
    await grant(owner, keyId, grantee, ["SIGN"]);
    expect((await grantee.kms.createCsr(request)).result?.keyId).toBe(keyId);
  });

  it("of a KEM key can allow encapsulation without decapsulation", async () => {
    const server = await shared();
    const [owner, grantee] = await makePeople(server);
    const { keyId } = await makeKey(owner, { algorithm: "ML-KEM-512" });
    await grant(owner, keyId, grantee, ["ENCAPSULATE"]);
    const { result } = await grantee.kms.encapsulate({ keyId });
    const { ciphertext } = present(result);
    expect(await refusal(grantee.kms.decapsulate({ keyId, ciphertext }))).toEqual(missing);
  });

  it("of ENCRYPT allows neither to decrypt nor to re-encrypt, whose two keys need a grant each", async () => {
    const server = await shared();
    const [owner, grantee] = await makePeople(server);
    const { keyId } = await makeKey(owner, { algorithm: "X-Wing", usage: "ENCRYPT" });
    const { keyId: otherId } = await makeKey(owner, { algorithm: "X-Wing", usage: "ENCRYPT" });
    await grant(owner, keyId, grantee, ["ENCRYPT"]);
    const { ciphertext } = present((await grantee.kms.encrypt({ keyId, plaintext: data })).result);
    expect(await refusal(grantee.kms.decrypt({ ciphertext }))).toEqual(missing);
    const move = () => grantee.kms.reEncrypt({ ciphertext, keyId: otherId });
    expect(await refusal(move())).toEqual(missing);
    await grant(owner, keyId, grantee, ["DECRYPT"]);
    expect(await refusal(move())).toEqual(notFound);
    await grant(owner, otherId, grantee, ["DECRYPT"]);
    expect(await refusal(move())).toEqual(missing);
    await grant(owner, otherId, grantee, ["ENCRYPT"]);
    const moved = present((await move()).result);
    expect(await refusal(grantee.kms.decrypt({ ciphertext: flipBit(moved.ciphertext, 40) }))).toEqual({
      code: "InvalidArgument",
      reason: "DECRYPTION_FAILED",
    });
    expect((await grantee.kms.decrypt({ ciphertext: moved.ciphertext })).result?.plaintext).toEqual(data);
  });

  it("ends on every server upon revocation, even for running calls", async () => {
    const server = await shared();
    const [owner, grantee] = await makePeople(server);
    const { keyId } = await makeKey(owner);
    const { grantId } = await grant(owner, keyId, grantee, ["SIGN"]);
    const callers = Array.from({ length: 8 }, async () => {
      for (;;) {
        const outcome = await grantee.kms.sign({ keyId, data }).then(
          () => undefined,
          (error: unknown) => refusal(Promise.reject(error)),
        );
        if (outcome !== undefined) return outcome;
      }
    });
    const revoked = present((await owner.kms.revokeGrant({ grantId })).grant);
    expect(revoked).toMatchObject({ grantId, grantee: grantee.name });
    expect(await Promise.all(callers)).toEqual(callers.map(() => notFound));
    const { auditLog } = await owner.kms.getAuditLog({ keyId });
    const end = auditLog.findIndex(({ operation }) => operation === "REVOKE_GRANT");
    const later = auditLog.slice(end + 1).filter(({ outcome }) => outcome === "OK");
    expect([end > 0, later]).toEqual([true, []]);
    expect(await refusal(owner.kms.revokeGrant({ grantId }))).toEqual(grantNotFound);
  });

  it.each(["of a key", "of a name"])(
    "%s stays ended if its record is restored in the database",
    async (target) => {
      const server = await shared();
      const [owner, grantee] = await makePeople(server);
      const { keyId, name = "" } = await makeKey(owner);
      const handle = target === "of a key" ? keyId : `name/${name}`;
      const { grantId } = await grant(owner, handle, grantee, Object.keys(uses));
      const rows = await server.tamper((db) =>
        db.selectFrom("kms_grants").selectAll().where("grant_id", "=", grantId).execute(),
      );
      await grantee.kms.sign({ keyId, data });
      await owner.kms.revokeGrant({ grantId });
      await server.tamper((db) => db.insertInto("kms_grants").values(rows).execute());
      for (const use of Object.values(uses)) expect(await refusal(use(grantee.kms, keyId))).toEqual(notFound);
      expect(await findMessage(grantee.kms.sign({ keyId: `name/${name}`, data }))).toMatch(/does not exist$/);
      const other = await grant(owner, handle, grantee, ["SIGN"]);
      for (const { grants } of [
        await owner.kms.listGrants({}),
        await grantee.kms.listGrants({ received: true }),
      ])
        expect(grants.map(({ damaged }) => damaged).sort()).toEqual([true, undefined]);
      await grantee.kms.sign({ keyId, data });
      await owner.kms.revokeGrant({ grantId });
      await owner.kms.revokeGrant({ grantId: other.grantId });
      expect((await owner.kms.listGrants({})).grants).toEqual([]);
    },
  );

  it("has no effect after its expiry, and is no longer listed", async () => {
    const server = await shared();
    const [owner, grantee] = await makePeople(server);
    const { keyId } = await makeKey(owner);
    // Each must expire soon, but only after the key has been used.
    const granted: unknown[] = [];
    const grantAndSign = async (): Promise<void> => {
      const expiresAt = timestampFromMs(Date.now() + 1500 * 2 ** granted.length);
      granted.push(await grant(owner, keyId, grantee, ["SIGN"], { expiresAt }));
      await grantee.kms.sign({ keyId, data });
    };
    await vi.waitFor(grantAndSign, { timeout: 100_000 });
    await expect
      .poll(
        () =>
          grantee.kms.sign({ keyId, data }).then(
            () => "",
            (error) => refusal(Promise.reject(error)),
          ),
        { timeout: 120_000 },
      )
      .toEqual(notFound);
    expect((await owner.kms.listGrants({})).grants).toEqual([]);
    const removed = async () =>
      (await owner.kms.getAuditLog({ keyId, operation: "REVOKE_GRANT" })).auditLog.map(({ user }) => user);
    await expect.poll(removed).toEqual(granted.map(() => "schedule"));
  });

  it("of a name covers future versions, and one of a key does not", async () => {
    const server = await shared();
    const [owner, grantee, narrow] = await makePeople(server);
    const { keyId, name = "" } = await makeKey(owner);
    await present((await owner.kms.createGrant({ name, grantee: grantee.name, operations: ["SIGN"] })).grant);
    await grant(owner, keyId, narrow, ["VERIFY"]);
    const { newKey } = await owner.kms.rotateKey({ keyId: `name/${name}` });
    const next = present(newKey).keyId;
    const full = `user/${owner.name}/name/${name}`;
    for (const handle of [full, `${full}/2`, next])
      expect((await grantee.kms.sign({ keyId: handle, data })).result?.keyId).toBe(next);
    const signature = new Uint8Array(2420);
    await narrow.kms.verify({ keyId, data, signature });
    expect(await refusal(narrow.kms.verify({ keyId: next, data, signature }))).toEqual(notFound);
  });

  it("never changes the meaning of a bare name: it refers to the caller's own key in every call", async () => {
    const server = await shared();
    const [owner, grantee] = await makePeople(server);
    const { keyId, name = "" } = await makeKey(owner);
    await grant(owner, `name/${name}`, grantee, Object.keys(uses));
    const calls = { ...uses, ...changes, CreateCsr: createCsr, BatchSign: batchSign, SignStream: signStream };
    for (const handle of [`name/${name}`, `name/${name}/1`]) {
      for (const call of Object.values(calls))
        expect(await refusal(call(grantee.kms, handle))).toEqual(notFound);
      expect((await grantee.kms.listGrants({ keyId: handle, received: true })).grants).toEqual([]);
      const response = await server.rest(`GET /api/kms/key/${handle}`, undefined, {
        authorization: `Bearer ${grantee.token}`,
      });
      expect(response.status).toBe(404);
    }
    const { keyId: own } = await makeKey(grantee, { name });
    for (const handle of [`name/${name}`, `name/${name}/1`])
      expect((await grantee.kms.sign({ keyId: handle, data })).result?.keyId).toBe(own);
    const exact = await grantee.kms.sign({ keyId: `user/${owner.name}/name/${name}`, data });
    expect(exact.result?.keyId).toBe(keyId);
  });

  it("shows the full name only to a grantee who uses the bare one", async () => {
    const server = await shared();
    const [owner, second, grantee, other] = await makePeople(server);
    const { name = "" } = await makeKey(owner);
    await makeKey(second, { name });
    const bare = `name/${name}`;
    const explain = ({ kms }: Person, handle: string) => findMessage(kms.sign({ keyId: handle, data }));
    const unknown = (handle: string) => `key ${handle} does not exist`;
    const full = (person: Person) => `user/${person.name}/name/${name}`;
    expect(await explain(grantee, bare)).toBe(unknown(bare));
    const { grantId } = await grant(owner, bare, grantee, ["SIGN"]);
    for (let i = 0; i < 12; i += 1) await grant(owner, bare, grantee, ["VERIFY"]);
    expect(await explain(grantee, bare)).toBe(
      `${unknown(bare)}; without a user, the name means your own key. A grant lets you use ${full(owner)}`,
    );
    expect(await explain(grantee, `${bare}/1`)).toContain(`use ${full(owner)}/1`);
    await grant(second, bare, grantee, ["SIGN"]);
    expect(await explain(grantee, bare)).toContain(`use ${full(owner)} or ${full(second)}`);
    expect(await explain(other, bare)).toBe(unknown(bare));
    expect(await explain(grantee, full(other))).toBe(unknown(full(other)));
    for (const { grantId: id } of (await owner.kms.listGrants({ keyId: bare })).grants)
      if (id !== grantId) await owner.kms.revokeGrant({ grantId: id });
    await owner.kms.revokeGrant({ grantId });
    expect(await explain(grantee, bare)).toMatch(new RegExp(` use ${full(second)}$`));
    await server.office.users.remove(second.name);
    expect(await explain(grantee, bare)).toBe(unknown(bare));
  });

  it("for a name refers to the caller's own key, even for an administrator, who sees all keys", async () => {
    const server = await shared();
    const [owner, grantee] = await makePeople(server);
    const admin = await server.makePerson("admin");
    const { name = "" } = await makeKey(owner);
    const give = (fields: object) =>
      admin.kms.createGrant({ ...fields, grantee: grantee.name, operations: ["SIGN"] });
    expect(await refusal(give({ name }))).toEqual(notFound);
    expect(await refusal(give({ keyId: `name/${name}` }))).toEqual(notFound);
    expect(await refusal(admin.kms.rotateKey({ keyId: `name/${name}` }))).toEqual(notFound);
    await give({ keyId: `user/${owner.name}/name/${name}` });
    await owner.kms.rotateKey({ keyId: `name/${name}` });
    const { newKey } = await admin.kms.rotateKey({ keyId: `user/${owner.name}/name/${name}` });
    expect((await grantee.kms.sign({ keyId: present(newKey).keyId, data })).result).toBeDefined();
  });

  it("counts after any number of grants for other operations", async () => {
    const server = await shared();
    const [owner, grantee] = await makePeople(server);
    const { keyId } = await makeKey(owner);
    for (let i = 0; i < 12; i += 1) await grant(owner, keyId, grantee, ["VERIFY"]);
    await grant(owner, keyId, grantee, ["SIGN"]);
    expect((await grantee.kms.sign({ keyId, data })).result?.keyId).toBe(keyId);
  });

  it("of one version reveals no other, and foreign names do not reveal whether they exist", async () => {
    const server = await shared();
    const [owner, grantee, other] = await makePeople(server);
    const { keyId, name = "" } = await makeKey(owner);
    const { newKey } = await owner.kms.rotateKey({ keyId: `name/${name}` });
    await grant(owner, present(newKey).keyId, grantee, ["GET_KEY"]);
    const handle = `user/${owner.name}/name/${name}`;
    expect((await grantee.kms.getKey({ keyId: handle })).versions).toEqual([]);
    expect(await refusal(grantee.kms.getKey({ keyId }))).toEqual(notFound);
    for (const unknown of [handle, `${handle}-none`, `${handle}/1`, `${handle}/9`]) {
      expect((await other.kms.listGrants({ keyId: unknown })).grants).toEqual([]);
      expect((await other.kms.listGrants({ keyId: unknown, received: true })).grants).toEqual([]);
      expect((await other.kms.getAuditLog({ keyId: unknown })).auditLog).toEqual([]);
    }
  });

  it("reveals nothing else: no list, no entry, no export, no other grant", async () => {
    const server = await shared();
    const [owner, grantee, other] = await makePeople(server);
    const { keyId } = await makeKey(owner);
    const { grantId } = await grant(owner, keyId, grantee, Object.keys(uses));
    await grant(owner, keyId, other, ["SIGN"]);
    await grantee.kms.sign({ keyId, data });
    expect(await grantee.kms.listKeys({})).toMatchObject({ keys: [], totalSize: 0 });
    expect(await grantee.kms.getAuditLog({ keyId })).toMatchObject({ auditLog: [], totalSize: 0 });
    expect(await grantee.kms.exportPublicKeys({})).toMatchObject({ keys: [], pem: "", totalSize: 0 });
    expect((await grantee.kms.listGrants({})).grants).toEqual([]);
    const received = (await grantee.kms.listGrants({ received: true })).grants;
    expect(received).toMatchObject([{ grantId, keyId, owner: owner.name, grantee: grantee.name }]);
    expect(await refusal(grantee.kms.revokeGrant({ grantId }))).toEqual(grantNotFound);
    expect((await owner.kms.listGrants({ keyId })).totalSize).toBe(2);
  });

  it("is not needed to see whose key it is: administrators and grantees see the owner, and owners do not", async () => {
    const server = await shared();
    const [owner, grantee] = await makePeople(server);
    const admin = await server.makePerson("admin");
    const { keyId } = await makeKey(owner);
    await grant(owner, keyId, grantee, ["GET_KEY"]);
    const ownerIn = async ({ kms }: Person) => (await kms.getKey({ keyId })).result?.owner;
    expect(await Promise.all([admin, grantee, owner].map(ownerIn))).toEqual([
      owner.name,
      owner.name,
      undefined,
    ]);
    const { keys } = await admin.kms.listKeys({ pageSize: 1000 });
    expect(keys.find((key) => key.keyId === keyId)?.owner).toBe(owner.name);
  });

  it("shows the owner's ID if the user was removed, or changed outside the service", async () => {
    const server = await shared();
    const [removed, changed] = await makePeople(server);
    const admin = await server.makePerson("admin");
    await makeKey(removed);
    await makeKey(changed);
    await server.office.users.remove(removed.name);
    await server.tamper((db) =>
      db.updateTable("users").set({ role: "admin" }).where("name", "=", changed.name).execute(),
    );
    const owners = (await admin.kms.listKeys({ pageSize: 1000 })).keys.map((key) => key.owner);
    expect(owners).toEqual(expect.arrayContaining([removed.userId, changed.userId]));
  });

  it("names the owner even if an administrator creates it by the key's ID", async () => {
    const server = await shared();
    const [owner, grantee] = await makePeople(server);
    const admin = await server.makePerson("admin");
    const { keyId } = await makeKey(owner);
    const { grantId } = await grant(admin, keyId, grantee, ["SIGN"]);
    for (const { grants } of [
      await owner.kms.listGrants({ keyId }),
      await grantee.kms.listGrants({ received: true }),
    ])
      expect(grants).toMatchObject([{ grantId, owner: owner.name, grantee: grantee.name }]);
  });

  it("leaves the key with its owner, who sees in the log who used it", async () => {
    const server = await shared();
    const [owner, grantee] = await makePeople(server);
    const { keyId } = await makeKey(owner);
    await grant(owner, keyId, grantee, ["SIGN"]);
    await grantee.kms.sign({ keyId, data });
    await refusal(grantee.kms.destroyKey({ keyId }));
    const { auditLog } = await owner.kms.getAuditLog({ keyId, user: grantee.name });
    expect(auditLog.map(({ operation, outcome }) => `${operation} ${outcome}`)).toEqual([
      "SIGN OK",
      "DESTROY REFUSED",
    ]);
    expect(auditLog[0]).toMatchObject({ clientAddress: "127.0.0.1", requestId: expect.stringMatching(/./) });
  });

  it("is rejected for an unknown user, oneself, a past expiry, and no or impossible operations", async () => {
    const server = await shared();
    const [owner, grantee] = await makePeople(server);
    const { keyId } = await makeKey(owner);
    const give = (fields: object) =>
      refusal(owner.kms.createGrant({ keyId, grantee: grantee.name, operations: ["SIGN"], ...fields }));
    expect(await give({ grantee: "nobody at all" })).toEqual(invalid("grantee"));
    // It owns what an open server created, but is not a user: only a later start with --auth open would make
    // it one.
    expect(await give({ grantee: "system" })).toEqual(invalid("grantee"));
    expect(await give({ grantee: owner.name })).toEqual(invalid("grantee"));
    expect(await give({ grantee: "" })).toEqual(invalid("grantee"));
    expect(await give({ expiresAt: timestampFromDate(new Date(0)) })).toEqual(invalid("expiresAt"));
    expect(await give({ operations: [] })).toEqual(invalid("operations"));
    expect(await give({ operations: ["DESTROY"] })).toMatchObject({ reason: "FIELD_INVALID" });
    expect(await give({ operations: ["SIGN", "SIGN"] })).toEqual(invalid("operations"));
    expect(await give({ operations: ["SIGN", "DECRYPT"] })).toEqual(invalid("operations[1]"));
    expect(await give({ name: "both" })).toMatchObject({ reason: "FIELD_INVALID" });
  });

  it("cannot be created by a user who was written into the database as the key's owner", async () => {
    const server = await shared();
    const [owner, mallory, grantee] = await makePeople(server);
    const { keyId } = await makeKey(owner);
    const give = (to: Person) =>
      server.tamper((db) =>
        db.updateTable("kms_keys").set({ owner: to.userId }).where("key_id", "=", keyId).execute(),
      );
    await give(mallory);
    const creation = mallory.kms.createGrant({ keyId, grantee: grantee.name, operations: ["SIGN"] });
    expect(await refusal(creation)).toEqual({ code: "DataLoss", reason: "KEY_DAMAGED" });
    await give(owner);
    expect(await refusal(grantee.kms.sign({ keyId, data }))).toEqual(notFound);
  });

  it("is not inherited by a new user with the same name", async () => {
    const server = await shared();
    const [owner, grantee] = await makePeople(server);
    const { keyId } = await makeKey(owner);
    await grant(owner, keyId, grantee, ["SIGN"]);
    await server.office.users.remove(grantee.name);
    const namesake = await server.makePerson("user", grantee.name);
    expect(await refusal(namesake.kms.sign({ keyId, data }))).toEqual(notFound);
  });
});
