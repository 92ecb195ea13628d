/** Lists of a user's own keys, filtered and page by page. */
import { expect, it } from "vitest";
import { readPages } from "../services/answers.ts";
import { describeAccess, makePeople } from "./access-server.ts";

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
