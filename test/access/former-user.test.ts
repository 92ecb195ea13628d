import { expect, it } from "vitest";
import { present } from "../services/answers.ts";
import { bytesOf } from "../support/bytes.ts";
import { refusal } from "../support/refusal.ts";
import { type AccessServer, describeAccess, issueTo, type Person } from "./access-server.ts";
import { allKinds } from "./owned-records.ts";

const data = bytesOf("hello");

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
