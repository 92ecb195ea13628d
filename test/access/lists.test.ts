/** Lists of a user's own keys, and who can read which audit log entries: filtered and page by page. */

import { timestampDate, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, it } from "vitest";
import { present, readPages } from "../services/answers.ts";
import { bytesOf } from "../support/bytes.ts";
import { refusal } from "../support/refusal.ts";
import { describeAccess, makePeople, type Person } from "./access-server.ts";

describeAccess("a user's key lists", (shared) => {
  it.each([
    ["a label", { label: "team=a" }],
    ["a usage", { usage: "SIGN" }],
    ["a name", { name: "mine" }],
    ["a status", { status: "ACTIVE" }],
    ["all of these", { label: "team=a", usage: "SIGN", status: "ACTIVE", algorithm: "ML-DSA-44" }],
  ])("continue page by page when filtered by %s", async (_what, filter) => {
    const [ada, bob] = await makePeople(await shared());
    const key = { algorithm: "ML-DSA-44", labels: { team: "a" } };
    await bob.kms.createKey(key);
    await ada.kms.createKey(key);
    await ada.kms.createKey({ ...key, name: "mine" });
    if (!("status" in filter)) await ada.kms.rotateKey({ keyId: "name/mine" });
    const all = (await ada.kms.listKeys(filter)).keys;
    expect(all.length).toBeGreaterThan(1);
    const { rows, totals } = await readPages(
      (pageToken) => ada.kms.listKeys({ ...filter, pageSize: 1, pageToken }),
      ({ keys }) => keys.map(({ keyId }) => keyId),
    );
    expect(rows).toEqual(all.map(({ keyId }) => keyId));
    expect(totals).toEqual([all.length]);
  });

  it("of public keys by name contain the caller's own keys, even for an administrator", async () => {
    const [ada, admin] = await makePeople(await shared(), "user", "admin");
    const key = { algorithm: "ML-DSA-44", name: "trusted" };
    await ada.kms.createKey(key);
    const none = { exported: [], totalSize: 0 };
    expect(await admin.kms.exportPublicKeys({ name: "trusted" })).toMatchObject(none);
    const { result } = await admin.kms.createKey(key);
    const { exported } = await admin.kms.exportPublicKeys({ name: "trusted" });
    expect(exported.map(({ keyId }) => keyId)).toEqual([result?.keyId]);
    expect((await admin.kms.exportPublicKeys({})).exported.length).toBeGreaterThan(1);
  });

  it("in bills of materials contain the caller's own keys, and all keys for an administrator", async () => {
    const server = await shared();
    const [ada, bob] = await makePeople(server);
    const made = [ada, bob].map(async ({ kms }) => (await kms.createKey({})).result?.keyId ?? "");
    const [adas = "", bobs = ""] = await Promise.all(made);
    const readKeys = async ({ kms }: typeof ada) => {
      const parts: Uint8Array[] = [];
      for await (const { cbom } of kms.getCbom({})) if (cbom !== undefined) parts.push(cbom.data);
      const { dependencies } = JSON.parse(Buffer.concat(parts).toString());
      return dependencies.map(({ ref }: { ref: string }) => ref);
    };
    expect(await readKeys(bob)).toContain(bobs);
    expect(await readKeys(bob)).not.toContain(adas);
    expect(await readKeys(await server.makePerson("admin"))).toEqual(expect.arrayContaining([adas, bobs]));
  });

  it("of public keys and grants continue page by page too", async () => {
    const [ada, bob] = await makePeople(await shared());
    const key = { algorithm: "ML-DSA-44", name: "mine", labels: { team: "a" } };
    await ada.kms.createKey(key);
    await ada.kms.rotateKey({ keyId: "name/mine" });
    const filter = { name: "mine", label: "team=a", pageSize: 1 };
    const first = await ada.kms.exportPublicKeys(filter);
    const second = await ada.kms.exportPublicKeys({ ...filter, pageToken: first.nextPageToken });
    expect([...first.exported, ...second.exported].map(({ version }) => version)).toEqual([1, 2]);
    for (const operation of ["SIGN", "VERIFY"])
      await ada.kms.createGrant({ name: "mine", grantee: bob.name, operations: [operation] });
    for (const [person, query] of [
      [ada, { keyId: "name/mine", pageSize: 1 }],
      [bob, { received: true, pageSize: 1 }],
    ] as const) {
      const page = await person.kms.listGrants(query);
      const next = await person.kms.listGrants({ ...query, pageToken: page.nextPageToken });
      const operations = [...page.grants, ...next.grants].map((grant) => grant.operations);
      expect(operations).toEqual([["SIGN"], ["VERIFY"]]);
    }
  });
});

const data = bytesOf("hello");

async function makeUsedKey({ kms }: Person): Promise<string> {
  const { keyId } = present((await kms.createKey({ algorithm: "ML-DSA-44" })).result);
  await kms.sign({ keyId, data });
  await refusal(kms.encapsulate({ keyId }));
  return keyId;
}

const deedsOf = async ({ kms }: Person, query: object) =>
  (await kms.getAuditLog(query)).auditLog.map(
    ({ keyId, operation, outcome }) => `${keyId} ${operation} ${outcome}`,
  );

describeAccess("the audit log", (shared) => {
  it("shows an owner the entries of their keys, and an auditor all entries", async () => {
    const [ada, bob, auditor] = await makePeople(await shared(), "user", "user", "auditor");
    const [adas, bobs] = [await makeUsedKey(ada), await makeUsedKey(bob)];
    const ofAda = [`${adas} CREATE OK`, `${adas} SIGN OK`, `${adas} ENCAPSULATE REFUSED`];
    expect(await deedsOf(ada, {})).toEqual(ofAda);
    expect(await deedsOf(ada, { keyId: bobs })).toEqual([]);
    expect(await deedsOf(auditor, { keyId: adas })).toEqual(ofAda);
    expect(await deedsOf(auditor, { keyId: bobs })).toHaveLength(3);
    expect((await ada.kms.getAuditLog({})).totalSize).toBe(3);
  });

  it("hides an entry from a user who was written into the database as its owner", async () => {
    const server = await shared();
    const [ada, bob, auditor] = await makePeople(server, "user", "user", "auditor");
    const [adas, bobs] = [await makeUsedKey(ada), await makeUsedKey(bob)];
    const give = (owner: string) =>
      server.tamper((db) =>
        db.updateTable("audit_entries").set({ owner }).where("key_id", "=", adas).execute(),
      );
    const before = await deedsOf(bob, {});
    const first = present((await auditor.kms.getAuditLog({ keyId: adas })).auditLog[0]);
    await give(bob.userId);
    expect(await deedsOf(bob, {})).toEqual(before);
    for await (const { entry } of bob.kms.watchAuditLog({ afterSequence: first.sequence - 1 })) {
      expect(present(entry).keyId).toBe(bobs);
      break;
    }
    expect(await deedsOf(ada, {})).toEqual([]);
    expect(await deedsOf(auditor, { keyId: adas })).toHaveLength(3);
    await give(ada.userId);
    expect(await deedsOf(ada, {})).toHaveLength(3);
  });

  it("shows an owner who used their key with a grant, or tried to without one", async () => {
    const [ada, bob, mallory] = await makePeople(await shared());
    const keyId = await makeUsedKey(ada);
    await ada.kms.createGrant({ keyId, grantee: bob.name, operations: ["SIGN"] });
    await bob.kms.sign({ keyId, data });
    await refusal(bob.kms.destroyKey({ keyId }));
    await refusal(mallory.kms.sign({ keyId, data }));
    expect(await deedsOf(ada, { keyId, user: bob.name })).toEqual([
      `${keyId} SIGN OK`,
      `${keyId} DESTROY REFUSED`,
    ]);
    const { auditLog } = await ada.kms.getAuditLog({ keyId, user: mallory.name });
    expect(auditLog).toMatchObject([
      { operation: "SIGN", outcome: "REFUSED", details: "reason=KEY_NOT_FOUND", clientAddress: "127.0.0.1" },
    ]);
    expect((await mallory.kms.getAuditLog({})).totalSize).toBe(0);
  });

  it.each([
    ["a key, under it and its name", "keyId"],
    ["a name, under the name and not a version", "name"],
  ])("shows both ends of a grant for %s", async (_what, target) => {
    const [ada, bob] = await makePeople(await shared());
    const name = `granted-by-${target}`;
    const { keyId } = present((await ada.kms.createKey({ algorithm: "ML-DSA-44", name })).result);
    const granted = target === "name" ? { name } : { keyId };
    const created = await ada.kms.createGrant({ ...granted, grantee: bob.name, operations: ["SIGN"] });
    await ada.kms.revokeGrant({ grantId: present(created.grant).grantId });
    const handle = target === "name" ? `name/${name}` : keyId;
    const deeds = [`${keyId} CREATE OK`, `${handle} CREATE_GRANT OK`, `${handle} REVOKE_GRANT OK`];
    expect(await deedsOf(ada, { keyId: `name/${name}` })).toEqual(deeds);
    expect(await deedsOf(ada, { keyId })).toEqual(deeds.filter((deed) => deed.startsWith(keyId)));
  });

  it("does not show the entries of a user's own name for the same name of another user", async () => {
    const [ada, bob] = await makePeople(await shared());
    const name = "same";
    for (const { kms } of [ada, bob]) await kms.createKey({ algorithm: "ML-DSA-44", name });
    expect(await deedsOf(ada, { keyId: `name/${name}` })).toHaveLength(1);
    expect(await deedsOf(ada, { keyId: `user/${ada.name}/name/${name}` })).toHaveLength(1);
    for (const user of [bob.name, "nobody"])
      expect(await deedsOf(ada, { keyId: `user/${user}/name/${name}` })).toEqual([]);
  });

  it("can be filtered by operation, outcome, user and time, page by page", async () => {
    const ada = await (await shared()).makePerson();
    const keyId = await makeUsedKey(ada);
    await ada.kms.sign({ keyId, data });
    const all = (await ada.kms.getAuditLog({ keyId })).auditLog;
    const times = all.map(({ timestamp }) => timestampDate(present(timestamp)).getTime());
    const [first = 0, second = 0] = times;
    expect(await deedsOf(ada, { outcome: "REFUSED" })).toEqual([`${keyId} ENCAPSULATE REFUSED`]);
    expect(await deedsOf(ada, { operation: "SIGN", outcome: "OK" })).toHaveLength(2);
    expect(await deedsOf(ada, { user: "somebody else" })).toEqual([]);
    expect(await deedsOf(ada, { user: ada.name })).toHaveLength(4);
    expect(await deedsOf(ada, { to: timestampFromMs(first) })).toEqual([]);
    expect(await deedsOf(ada, { from: timestampFromMs(second) })).toHaveLength(
      times.filter((time) => time >= second).length,
    );
    const page = await ada.kms.getAuditLog({ operation: "SIGN", pageSize: 1 });
    expect(page).toMatchObject({ auditLog: [{ operation: "SIGN" }], totalSize: 2 });
    const next = { operation: "SIGN", pageSize: 1, pageToken: page.nextPageToken };
    expect((await ada.kms.getAuditLog(next)).auditLog).toHaveLength(1);
    for (const [field, query] of Object.entries({
      pageToken: { ...next, operation: "VERIFY" },
      operation: { operation: "sign" },
      outcome: { outcome: "MAYBE" },
    }))
      expect(await refusal(ada.kms.getAuditLog(query))).toMatchObject({ fields: [field] });
  });

  it("can be watched by an owner with the same restrictions and filters", async () => {
    const [ada, bob] = await makePeople(await shared());
    await makeUsedKey(bob);
    const keyId = await makeUsedKey(ada);
    const seen: string[] = [];
    const watching = (async () => {
      for await (const { entry } of ada.kms.watchAuditLog({ afterSequence: 0, outcome: "OK" }))
        if (seen.push(`${entry?.keyId} ${entry?.operation}`) === 3) break;
    })();
    await makeUsedKey(bob);
    await ada.kms.sign({ keyId, data });
    await watching;
    expect(seen).toEqual([`${keyId} CREATE`, `${keyId} SIGN`, `${keyId} SIGN`]);
  });

  it("records the caller's x-request-id if it is safe to store", async () => {
    const server = await shared();
    const ada = await server.makePerson();
    const header = { authorization: `Bearer ${ada.token}`, "x-request-id": "order-42" };
    await server.rest("POST /api/kms/create-key", { algorithm: "ML-DSA-44" }, header);
    expect((await ada.kms.getAuditLog({})).auditLog).toMatchObject([{ requestId: "order-42" }]);
  });
});
