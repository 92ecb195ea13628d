/**
 * Grants: access to another user's key, for some operations, until they end; and what callers without one can find out
 * about other users' names from the work that rejecting them takes.
 */
import { timestampFromDate, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { DefaultQueryExecutor } from "kysely";
import { expect, it, onTestFinished, vi } from "vitest";
import { KmsService, SignStreamHeaderSchema } from "#gen/kms/kms_service_pb.ts";
import { present } from "../services/answers.ts";
import { bytesOf, flipBit } from "../support/bytes.ts";
import { failureOf, outcomeOf, type Refusal, refusal } from "../support/refusal.ts";
import { fieldInvalid, invalid } from "../support/refusals.ts";
import { streamOf } from "../support/streams.ts";
import { describeAccess, makePeople, type Person } from "./access-server.ts";

const data = bytesOf("hello");
const notFound = { code: "NotFound", reason: "KEY_NOT_FOUND" };
const missing = { code: "PermissionDenied", reason: "GRANT_MISSING" };
const grantNotFound = { code: "NotFound", reason: "GRANT_NOT_FOUND" };

let names = 0;

async function makeKey({ kms }: Person, fields: object = {}) {
  names += 1;
  return present((await kms.createKey({ algorithm: "ML-DSA-44", name: `key-${names}`, ...fields })).result);
}

async function grant({ kms }: Person, keyId: string, to: Person, operations: string[], fields: object = {}) {
  return present((await kms.createGrant({ keyId, grantee: to.name, operations, ...fields })).grant);
}

type Call = (kms: Person["kms"], keyId: string) => Promise<unknown>;

async function encryptOwn(kms: Person["kms"]): Promise<Uint8Array> {
  const { keyId } = present((await kms.createKey({ usage: "ENCRYPT" })).result);
  return present((await kms.encrypt({ keyId, plaintext: data })).result).ciphertext;
}

/** Every call that takes a key handle. */
const calls = {
  getKey: (kms, keyId) => kms.getKey({ keyId }),
  rotateKey: (kms, keyId) => kms.rotateKey({ keyId }),
  disableKey: (kms, keyId) => kms.disableKey({ keyId }),
  enableKey: (kms, keyId) => kms.enableKey({ keyId }),
  destroyKey: (kms, keyId) => kms.destroyKey({ keyId }),
  restoreKey: (kms, keyId) => kms.restoreKey({ keyId }),
  createGrant: (kms, keyId) => kms.createGrant({ keyId, grantee: "nobody", operations: ["SIGN"] }),
  listGrants: (kms, keyId) => kms.listGrants({ keyId }),
  sign: (kms, keyId) => kms.sign({ keyId, data }),
  signStream: (kms, keyId) =>
    kms.signStream(
      streamOf(
        { part: { case: "header" as const, value: { keyId } } },
        { part: { case: "chunk" as const, value: data } },
      ),
    ),
  batchSign: (kms, keyId) => kms.batchSign({ keyId, data: [data] }),
  createCsr: (kms, keyId) => kms.createCsr({ keyId, subject: "CN=release" }),
  verify: (kms, keyId) => kms.verify({ keyId, data, signature: new Uint8Array(2420) }),
  encapsulate: (kms, keyId) => kms.encapsulate({ keyId }),
  decapsulate: (kms, keyId) => kms.decapsulate({ keyId, ciphertext: new Uint8Array(1088) }),
  encrypt: (kms, keyId) => kms.encrypt({ keyId, plaintext: data }),
  decrypt: async (kms, keyId) => kms.decrypt({ ciphertext: await encryptOwn(kms), keyId }),
  reEncrypt: async (kms, keyId) => kms.reEncrypt({ ciphertext: await encryptOwn(kms), keyId }),
  getAuditLog: (kms, keyId) => kms.getAuditLog({ keyId }),
  // No log is that long, so the stream ends once its filter has been built.
  watchAuditLog: async (kms, keyId) => {
    for await (const entry of kms.watchAuditLog({ keyId, afterSequence: 1_000_000 })) return entry;
  },
} as const satisfies Readonly<Record<string, Call>>;

/** What a grantee may do with a key, by operation name. */
const uses: Record<string, readonly Call[]> = {
  GET_KEY: [calls.getKey],
  SIGN: [calls.sign, calls.createCsr, calls.batchSign, calls.signStream],
  VERIFY: [calls.verify],
};
const allUses = Object.values(uses).flat();

const listAtBothEnds = (owner: Person, grantee: Person) =>
  Promise.all([owner.kms.listGrants({}), grantee.kms.listGrants({ received: true })]);

/** What no grant allows. */
const changes: readonly Call[] = [
  ...[calls.rotateKey, calls.disableKey, calls.enableKey, calls.restoreKey, calls.destroyKey],
  (kms, keyId) => kms.destroyKey({ keyId, afterSeconds: 60 }),
  calls.createGrant,
];

/** The message of a refusal. */
async function findMessage(call: Promise<unknown>): Promise<string> {
  return (await failureOf(call)).rawMessage;
}

describeAccess("a grant", (shared) => {
  it.each(Object.keys(uses))("of %s allows only this operation", async (granted) => {
    const [owner, grantee, other] = await makePeople(await shared());
    const { keyId } = await makeKey(owner);
    await grant(owner, keyId, grantee, [granted]);
    const { [granted]: allowed = [], ...others } = uses;
    for (const use of allowed) await use(grantee.kms, keyId);
    for (const call of [...Object.values(others).flat(), ...changes])
      expect(await refusal(call(grantee.kms, keyId))).toEqual(missing);
    for (const call of [...allUses, ...changes])
      expect(await refusal(call(other.kms, keyId))).toEqual(notFound);
  });

  it("of a KEM key can allow encapsulation without decapsulation", async () => {
    const [owner, grantee] = await makePeople(await shared());
    const { keyId } = await makeKey(owner, { algorithm: "ML-KEM-512" });
    await grant(owner, keyId, grantee, ["ENCAPSULATE"]);
    const { result } = await grantee.kms.encapsulate({ keyId });
    const { ciphertext } = present(result);
    expect(await refusal(grantee.kms.decapsulate({ keyId, ciphertext }))).toEqual(missing);
  });

  it("of ENCRYPT allows neither to decrypt nor to re-encrypt, whose two keys need a grant each", async () => {
    const [owner, grantee] = await makePeople(await shared());
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
    const [owner, grantee] = await makePeople(await shared());
    const { keyId } = await makeKey(owner);
    const { grantId } = await grant(owner, keyId, grantee, ["SIGN"]);
    const callers = Array.from({ length: 8 }, async () => {
      for (;;) {
        const outcome = await outcomeOf(grantee.kms.sign({ keyId, data }));
        if (outcome !== "answer") return outcome;
      }
    });
    const revoked = present((await owner.kms.revokeGrant({ grantId })).grant);
    expect(revoked).toMatchObject({ grantId, grantee: grantee.name });
    expect(new Set(await Promise.all(callers))).toEqual(new Set(["KEY_NOT_FOUND"]));
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
      for (const use of allUses) expect(await refusal(use(grantee.kms, keyId))).toEqual(notFound);
      expect(await findMessage(grantee.kms.sign({ keyId: `name/${name}`, data }))).toMatch(/does not exist$/);
      const other = await grant(owner, handle, grantee, ["SIGN"]);
      for (const { grants } of await listAtBothEnds(owner, grantee))
        expect(grants.map(({ damaged }) => damaged).sort()).toEqual([true, undefined]);
      await grantee.kms.sign({ keyId, data });
      await owner.kms.revokeGrant({ grantId });
      await owner.kms.revokeGrant({ grantId: other.grantId });
      expect((await owner.kms.listGrants({})).grants).toEqual([]);
    },
  );

  it("has no effect after its expiry, and is no longer listed", async () => {
    const [owner, grantee] = await makePeople(await shared());
    const { keyId } = await makeKey(owner);
    // Each must expire soon, but only after the key has been used.
    const granted: unknown[] = [];
    const grantAndSign = async (): Promise<void> => {
      const expiresAt = timestampFromMs(Date.now() + 1500 * 2 ** granted.length);
      granted.push(await grant(owner, keyId, grantee, ["SIGN"], { expiresAt }));
      await grantee.kms.sign({ keyId, data });
    };
    await vi.waitFor(grantAndSign, { timeout: 100_000 });
    const sign = () => outcomeOf(grantee.kms.sign({ keyId, data }));
    await expect.poll(sign, { timeout: 120_000 }).toBe("KEY_NOT_FOUND");
    expect((await owner.kms.listGrants({})).grants).toEqual([]);
    const removed = async () =>
      (await owner.kms.getAuditLog({ keyId, operation: "REVOKE_GRANT" })).auditLog.map(({ user }) => user);
    await expect.poll(removed).toEqual(granted.map(() => "schedule"));
  });

  it("of a name covers future versions, and one of a key does not", async () => {
    const [owner, grantee, narrow] = await makePeople(await shared());
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
    const [owner, grantee] = await makePeople(await shared());
    const { keyId, name = "" } = await makeKey(owner);
    await grant(owner, `name/${name}`, grantee, Object.keys(uses));
    for (const handle of [`name/${name}`, `name/${name}/1`]) {
      for (const call of [...allUses, ...changes])
        expect(await refusal(call(grantee.kms, handle))).toEqual(notFound);
      expect((await grantee.kms.listGrants({ keyId: handle, received: true })).grants).toEqual([]);
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
    // A grant counts after any number of grants for other operations.
    for (let i = 0; i < 12; i += 1) await grant(owner, bare, grantee, ["VERIFY"]);
    const { grantId } = await grant(owner, bare, grantee, ["SIGN"]);
    await grantee.kms.sign({ keyId: full(owner), data });
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
    const [owner, grantee, admin] = await makePeople(await shared(), "user", "user", "admin");
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
    for (const { grants } of await listAtBothEnds(owner, grantee))
      expect(grants).toMatchObject([{ owner: owner.name, grantee: grantee.name }]);
  });

  it("of one version reveals no other, and foreign names do not reveal whether they exist", async () => {
    const [owner, grantee, other] = await makePeople(await shared());
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
    const [owner, grantee, other] = await makePeople(await shared());
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
    const [owner, grantee, admin] = await makePeople(await shared(), "user", "user", "admin");
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
    const [removed, changed, admin] = await makePeople(server, "user", "user", "admin");
    await makeKey(removed);
    await makeKey(changed);
    await server.office.users.remove(removed.name);
    await server.tamper((db) =>
      db.updateTable("users").set({ role: "admin" }).where("name", "=", changed.name).execute(),
    );
    const owners = (await admin.kms.listKeys({ pageSize: 1000 })).keys.map((key) => key.owner);
    expect(owners).toEqual(expect.arrayContaining([removed.userId, changed.userId]));
  });

  it.each<[string, object, Refusal]>([
    ["an unknown user", { grantee: "nobody at all" }, invalid("grantee")],
    // It owns what an open server created, but is not a user: only a later start with --auth open would make it one.
    ["the system", { grantee: "system" }, invalid("grantee")],
    ["nobody", { grantee: "" }, invalid("grantee")],
    ["a past expiry", { expiresAt: timestampFromDate(new Date(0)) }, invalid("expiresAt")],
    ["no operation", { operations: [] }, invalid("operations")],
    ["an operation that no grant allows", { operations: ["DESTROY"] }, expect.objectContaining(fieldInvalid)],
    ["a repeated operation", { operations: ["SIGN", "SIGN"] }, invalid("operations")],
    ["an operation that the key lacks", { operations: ["SIGN", "DECRYPT"] }, invalid("operations[1]")],
    ["a key and a name", { name: "both" }, expect.objectContaining(fieldInvalid)],
  ])("is rejected for %s", async (_what, fields, expected) => {
    const [owner, grantee] = await makePeople(await shared());
    const { keyId } = await makeKey(owner);
    const give = (more: object) =>
      refusal(owner.kms.createGrant({ keyId, grantee: grantee.name, operations: ["SIGN"], ...more }));
    expect(await give(fields)).toEqual(expected);
    expect(await give({ grantee: owner.name })).toEqual(invalid("grantee"));
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
});

/** Finds statements about keys, names, grants and accounts. The server's own polls look for due work. */
const isOfCall = (statement: string): boolean =>
  /"(users|oauth_clients|kms_\w+)"/.test(statement) &&
  !/(destroy|rotation|expires)_at_ms"? <=/.test(statement);

/** Finds reads of a key by its ID: of the caller's own key, which the cache of a slow server may have dropped. */
const isOfOwnKey = (statement: string): boolean =>
  /from "kms_keys" where (1 = 1 and )?"key_id" = \S+$/.test(statement);
const withOwnKey = ["decrypt", "reEncrypt"];

/** Starts recording statements. */
function recordStatements(): { take(): string[] } {
  let statements: string[] = [];
  const { executeQuery } = DefaultQueryExecutor.prototype;
  const spy = vi.spyOn(DefaultQueryExecutor.prototype, "executeQuery").mockImplementation(function (
    this: DefaultQueryExecutor,
    query,
    options,
  ) {
    if (isOfCall(query.sql)) statements.push(query.sql);
    return executeQuery.call(this, query, options) as never;
  });
  onTestFinished(() => spy.mockRestore());
  return {
    take() {
      const taken = statements;
      statements = [];
      return taken;
    },
  };
}

describeAccess("another user's key name", (shared) => {
  it.each(Object.entries(calls))("takes as many queries whether it exists or not: %s", async (name, call) => {
    const [victim, mallory] = await makePeople(await shared());
    await victim.kms.createKey({ algorithm: "ML-DSA-44", name: "existing" });
    // The key is now in the cache.
    await victim.kms.sign({ keyId: "name/existing", data });
    await outcomeOf(call(mallory.kms, "name/warm"));
    const recorded = recordStatements();
    const look = async (handle: string) => {
      recorded.take();
      const outcome = await outcomeOf(call(mallory.kms, handle));
      // A watch also reads its caller again now and then.
      const statements = name === "watchAuditLog" ? [...new Set(recorded.take())] : recorded.take();
      const isIgnored = withOwnKey.includes(name) ? isOfOwnKey : () => false;
      return { outcome, statements: statements.filter((statement) => !isIgnored(statement)) };
    };
    for (const version of ["", "/1"]) {
      const [existing, missing, nobody] = [
        await look(`user/${victim.name}/name/existing${version}`),
        await look(`user/${victim.name}/name/none${version}`),
        await look(`user/nobody/name/existing${version}`),
      ];
      expect(existing.statements.length).toBeGreaterThan(1);
      expect(missing).toEqual(existing);
      expect(nobody).toEqual(existing);
    }
  });
});

it("is tested with every call that takes a handle", () => {
  const taking = KmsService.methods.filter(({ input }) =>
    [...input.fields, ...(input.name === "SignStreamRequest" ? SignStreamHeaderSchema.fields : [])].some(
      ({ name }) => name === "key_id",
    ),
  );
  expect(Object.keys(calls).sort()).toEqual(taking.map(({ localName }) => localName).sort());
});
