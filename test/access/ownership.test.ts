/** Whose records a user sees and may use, and records that were changed in the database. */

import type { Kysely } from "kysely";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Schema } from "../../src/database/schema.ts";
import { present, readPages } from "../services/answers.ts";
import { bytesOf } from "../support/bytes.ts";
import { describeRefusal, failureOf, outcomeOf, type Refusal, refusal } from "../support/refusal.ts";
import { damaged, invalid } from "../support/refusals.ts";
import {
  type AccessServer,
  type Clients,
  describeAccess,
  issueTo,
  makeDatabase,
  makePeople,
  type Person,
  startAccessServer,
} from "./access-server.ts";
import {
  allKinds,
  giveRecord,
  kinds,
  makeMultisig,
  makeProposal,
  type OwnedKind,
  type OwnedList,
} from "./owned-records.ts";

const data = bytesOf("hello");
const keyDamaged: Refusal = { code: "DataLoss", reason: "KEY_DAMAGED" };
const foreignPage = invalid("pageToken");
const notFound = (reason: string): Refusal => ({ code: "NotFound", reason });

describeAccess("lists of two users", (shared) => {
  for (const [name, { make, list }] of allKinds) {
    if (list === undefined) continue;
    describe(name, () => {
      it("shows and counts a user's own records, in pages, and all records for an administrator", async () => {
        const server = await shared();
        const [ada, bob, newcomer] = await makePeople(server);
        const adas = [await make(ada), await make(ada)];
        const bobs = [await make(bob)];
        adas.push(await make(ada));
        expect(await readAll(list, ada)).toEqual({ rows: adas, sizes: [2, 1], totals: [3] });
        expect(await readAll(list, bob)).toEqual({ rows: bobs, sizes: [1], totals: [1] });
        for (const other of [newcomer, await server.makePerson("auditor")])
          expect(await list(other, {})).toMatchObject({ ids: [], nextPageToken: "", totalSize: 0 });
        const { rows, totals } = await readAll(list, await server.makePerson("admin"), 1000);
        expect(rows).toEqual(expect.arrayContaining([...adas, ...bobs]));
        expect(totals).toEqual([rows.length]);
      });

      it("rejects page tokens of another user, of an administrator, and given to an administrator", async () => {
        const server = await shared();
        const [ada, bob] = await makePeople(server);
        const admin = await server.makePerson("admin");
        for (const person of [ada, ada, bob, bob]) await make(person);
        const tokenOf = async (person: Person) => (await list(person, { pageSize: 1 })).nextPageToken;
        const adas = await tokenOf(ada);
        expect((await list(ada, { pageToken: adas })).ids).toHaveLength(1);
        for (const pageSize of [-1, 1001])
          expect(await refusal(list(ada, { pageSize }))).toEqual(invalid("pageSize"));
        expect(await refusal(list(bob, { pageToken: adas }))).toEqual(foreignPage);
        expect(await refusal(list(admin, { pageToken: adas }))).toEqual(foreignPage);
        expect(await refusal(list(ada, { pageToken: await tokenOf(admin) }))).toEqual(foreignPage);
      });
    });
  }
});

describeAccess("list filters", (shared) => {
  it("find proposals by wallet and status, among the caller's own only", async () => {
    const [ada, bob] = await makePeople(await shared());
    const walletId = await makeMultisig(ada);
    const proposalId = await makeProposal(ada, walletId);
    for (const filter of [{ walletId }, { proposalStatus: "PENDING" }]) {
      expect(await ada.defi.listProposals(filter)).toMatchObject({
        proposals: [{ proposalId }],
        totalSize: 1,
      });
      expect(await bob.defi.listProposals(filter)).toMatchObject({ proposals: [], totalSize: 0 });
    }
  });

  it("find and count a token at its new address for its minter, whoever transferred it", async () => {
    const server = await shared();
    const [ada, bob] = await makePeople(server);
    const { tokenId, owner } = await ada.nft.mint({ name: "art" });
    const newOwner = `0x${owner.slice(2).split("").reverse().join("")}`;
    await (await server.makePerson("admin")).nft.transfer({ tokenId, newOwner });
    expect(await ada.nft.listTokens({ owner: newOwner })).toMatchObject({
      tokens: [{ tokenId }],
      totalSize: 1,
    });
    expect((await ada.nft.listTokens({ owner })).totalSize).toBe(0);
    expect((await bob.nft.listTokens({ owner: newOwner })).totalSize).toBe(0);
  });
});

describeAccess("a record whose owner was changed in the database", (shared) => {
  it.each(allKinds)(
    "does not become the other user's but counts as damaged, and other records are unaffected: %s",
    async (name, kind) => {
      const server = await shared();
      const [ada, bob] = await makePeople(server);
      const damagedAsSuch = name === "keys" ? keyDamaged : damaged;
      for (const use of kind.uses) {
        const [adas, bobs] = [await kind.make(ada), await kind.make(bob)];
        await server.tamper((db) => giveRecord(db, kind, adas, bob.userId));
        expect(await refusal(use(bob, adas))).toEqual(damagedAsSuch);
        const missing = notFound(kind.missing ?? "");
        expect(await refusal(use(ada, adas))).toEqual(kind.isHiddenIfGiven ? missing : damaged);
        expect(await outcomeOf(use(bob, bobs))).toBe(kind.outcome ?? "answer");
      }
    },
  );

  it.each<[string, OwnedKind, (admin: Clients, id: string) => Promise<unknown>]>([
    ["tunnels", kinds.tunnels, ({ vpn }, tunnelId) => vpn.disconnect({ tunnelId })],
    ["keys", kinds.keys, ({ kms }, keyId) => kms.destroyKey({ keyId })],
    ["devices", kinds.devices, ({ iot }, deviceId) => iot.removeDevice({ deviceId })],
  ])("can be removed by an administrator without affecting lists: %s", async (_name, kind, remove) => {
    const server = await shared();
    const [ada, bob, admin] = await makePeople(server, "user", "user", "admin");
    const id = await kind.make(ada);
    await server.tamper((db) => giveRecord(db, kind, id, bob.userId));
    await remove(admin, id);
    expect(await kind.list?.(ada, {})).toMatchObject({ ids: [], totalSize: 0 });
    expect(await kind.list?.(bob, { status: "ACTIVE" })).toMatchObject({ ids: [], totalSize: 0 });
  });
});

describeAccess("a user who was changed in the database", (shared) => {
  it.each(["role", "generation", "password_hash", "user_id"] as const)(
    "is locked out, and gets no other role: %s",
    async (column) => {
      const server = await shared();
      const [ada, bob] = await makePeople(server);
      const value = column === "role" ? "admin" : "another";
      const changed = { [column]: value };
      await server.tamper((db) =>
        db.updateTable("users").set(changed).where("name", "=", ada.name).execute(),
      );
      expect(await refusal(ada.kms.listKeys({}))).toEqual(damaged);
      expect((await bob.kms.listKeys({})).keys).toEqual([]);
    },
  );

  it("does not become an administrator by taking an administrator's row", async () => {
    const server = await shared();
    const [ada, admin] = await makePeople(server, "user", "admin");
    await server.tamper(async (db) => {
      const row = await db.selectFrom("users").selectAll().where("name", "=", admin.name).executeTakeFirst();
      const { name: _, user_id: _unique, ...rest } = present(row);
      await db.updateTable("users").set(rest).where("name", "=", ada.name).execute();
    });
    expect(await refusal(ada.kms.listKeys({}))).toEqual(damaged);
  });
});

describeAccess("a record changed by an administrator", (shared) => {
  it("stays its owner's: a rotated key, and a proposal for a wallet", async () => {
    const [ada, admin] = await makePeople(await shared(), "user", "admin");
    const { keyId: rotated } = present((await ada.kms.createKey({})).result);
    const { keyId } = present((await admin.kms.rotateKey({ keyId: rotated })).newKey);
    expect(await ada.kms.listKeys({ status: "ACTIVE" })).toMatchObject({ keys: [{ keyId }], totalSize: 1 });
    const proposalId = await makeProposal(admin, await makeMultisig(ada));
    expect(await ada.defi.listProposals({})).toMatchObject({ proposals: [{ proposalId }], totalSize: 1 });
  });
});

describeAccess("a record created while the server was open", () => {
  it("is visible to administrators, but not to users", async () => {
    const database = await makeDatabase(onTestFinished);
    const open = await startAccessServer({ atEnd: onTestFinished, database, args: ["--auth", "open"] });
    const { keyId } = present((await open.connect().kms.createKey({})).result);
    await open.close();
    const server = await startAccessServer({ atEnd: onTestFinished, database });
    const [ada, admin] = [await server.makePerson(), await server.makePerson("admin")];
    expect(await refusal(ada.kms.getKey({ keyId }))).toEqual(notFound("KEY_NOT_FOUND"));
    expect(await ada.kms.listKeys({})).toMatchObject({ keys: [], totalSize: 0 });
    expect(await admin.kms.getKey({ keyId })).toMatchObject({ result: { keyId } });
  });
});

describeAccess("blockchain.BlockchainService.AddBlock without a validator", (shared) => {
  it("uses the caller's first validator, and fails for a caller without one", async () => {
    const [ada, bob] = await makePeople(await shared());
    await ada.chain.registerNode({});
    const missing = { code: "FailedPrecondition", reason: "VALIDATOR_MISSING" };
    expect(await refusal(bob.chain.addBlock({ data }))).toEqual(missing);
    const { validatorAddress } = await bob.chain.registerNode({});
    await bob.chain.registerNode({});
    expect(await bob.chain.addBlock({ data })).toMatchObject({ block: { validatorAddress } });
  });
});

function readAll(list: OwnedList, clients: Clients, pageSize = 2) {
  return readPages(
    (pageToken) => list(clients, { pageSize, pageToken }),
    ({ ids }) => ids,
  );
}

/** Changes to a stored secret. test/secrets has the others. */
const changes: Readonly<Record<string, (db: Kysely<Schema>, identity: string) => Promise<unknown>>> = {
  "was changed": (db, identity) =>
    db
      .updateTable("sealed_secrets")
      .set({ ciphertext: new Uint8Array(60) })
      .where("identity", "=", identity)
      .execute(),
  "is missing": (db, identity) => db.deleteFrom("sealed_secrets").where("identity", "=", identity).execute(),
};

/**
 * A kind of record with a secret: how to create one, and a call that uses its secret. The first part of its
 * identity is its table.
 */
interface Keeper {
  readonly make: (clients: Clients) => Promise<string>;
  readonly use: (clients: Clients, id: string) => Promise<unknown>;
}

const keepers: Readonly<Record<string, Keeper>> = {
  kms_keys: { make: kinds.keys.make, use: ({ kms }, keyId) => kms.sign({ keyId, data }) },
  iot_devices: { make: kinds.devices.make, use: kinds.devices.uses[0] },
  vpn_tunnels: { make: kinds.tunnels.make, use: kinds.tunnels.uses[0] },
  wallets: { make: kinds.wallets.make, use: kinds.wallets.uses[0] },
  blockchain_validators: { make: kinds.validators.make, use: kinds.validators.uses[0] },
  defi_signers: {
    make: async ({ defi }) => {
      const { walletId, signers } = await defi.createMultisig({ signerCount: 1, threshold: 1 });
      return `${walletId}/${present(signers[0])}`;
    },
    use: async (clients, id) => {
      const [walletId = "", signer = ""] = id.split("/");
      return clients.defi.signProposal({ proposalId: await makeProposal(clients, walletId), signer });
    },
  },
};

describeAccess("a record whose sealed secret", (shared) => {
  describe.each(Object.entries(changes))("%s", (_what, change) => {
    it.each(Object.entries(keepers))(
      "counts as damaged and is named, but other records are unaffected: %s",
      async (table, keeper) => {
        const server = await shared();
        const ada = await server.makePerson();
        const [hurt, sound] = [await keeper.make(ada), await keeper.make(ada)];
        await server.tamper((db) => change(db, `${table}/${hurt}/secret-key`));
        const error = await failureOf(keeper.use(ada, hurt));
        const reason = table === "kms_keys" ? "KEY_DAMAGED" : "RECORD_DAMAGED";
        expect(describeRefusal(error)).toEqual({ code: "DataLoss", reason });
        expect(error.rawMessage).toContain(hurt.split("/").at(-1));
        await keeper.use(ada, sound);
      },
    );
  });
});

/** Removes a user, and adds one with the same name. */
async function replace(server: AccessServer, { name }: Pick<Person, "name">): Promise<Person> {
  await server.office.users.remove(name);
  return server.makePerson("user", name);
}

/** How many records of each kind a caller can see. */
function countAll(person: Person): Promise<number[]> {
  const lists = allKinds.flatMap(([, { list }]) => list ?? []);
  return Promise.all(lists.map(async (list) => (await list(person, {})).totalSize));
}

describeAccess("a user who is removed and added again", (shared) => {
  it("cannot see, count or use the former user's records, which are left to administrators", async () => {
    const server = await shared();
    const former = await server.makePerson();
    const ids: string[] = [];
    for (const [, { make }] of allKinds) ids.push(await make(former));
    expect(await countAll(former)).not.toContain(0);
    const again = await replace(server, former);
    expect(new Set(await countAll(again))).toEqual(new Set([0]));
    for (const [i, [, { uses, missing }]] of allKinds.entries())
      for (const use of uses) expect((await refusal(use(again, ids[i] ?? ""))).reason).toBe(missing);
    expect(await countAll(await server.makePerson("admin"))).not.toContain(0);
  });

  it("gets no stored response for the former user's idempotency keys", async () => {
    const server = await shared();
    const former = await server.makePerson();
    const order = { headers: { "idempotency-key": "the first order" } };
    const { deviceId } = await former.iot.registerDevice({}, order);
    const again = await replace(server, former);
    expect((await again.iot.registerDevice({}, order)).deviceId).not.toBe(deviceId);
  });

  it("cannot read the former user's audit entries, and the audit log shows the name for both", async () => {
    const server = await shared();
    const former = await server.makePerson();
    const { keyId } = present((await former.kms.createKey({})).result);
    const again = await replace(server, former);
    expect((await again.kms.getAuditLog({ keyId })).auditLog).toEqual([]);
    await refusal(again.kms.sign({ keyId, data }));
    const { auditLog } = await (await server.makePerson("auditor")).kms.getAuditLog({ keyId });
    expect(auditLog.map(({ user, operation, outcome }) => [user, operation, outcome])).toEqual([
      [former.name, "CREATE", "OK"],
      [former.name, "SIGN", "REFUSED"],
    ]);
  });

  it("does not inherit a grant", async () => {
    const server = await shared();
    const [owner, grantee] = [await server.makePerson(), await server.makePerson()];
    const { keyId } = present((await owner.kms.createKey({})).result);
    await owner.kms.createGrant({ keyId, grantee: grantee.name, operations: ["SIGN"] });
    const again = await replace(server, grantee);
    expect((await refusal(again.kms.sign({ keyId, data }))).reason).toBe("KEY_NOT_FOUND");
  });

  it("keeps their records after a password change, which does not change their identity", async () => {
    const server = await shared();
    const person = await server.makePerson();
    const { keyId } = present((await person.kms.createKey({})).result);
    await server.office.users.setPassword(person.name, "none");
    const { kms } = server.connect(`Bearer ${await issueTo(server.office, person.name)}`);
    expect(await kms.getKey({ keyId })).toMatchObject({ result: { keyId } });
  });
});
