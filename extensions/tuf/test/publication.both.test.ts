/** Publications: targets, delegations, renewals, races, and what stays readable. */
import { expect, it } from "vitest";
import { anyTable } from "../../../src/database/schema.ts";
import { present } from "../../../test/services/answers.ts";
import { describeStores, type Place } from "../../../test/support/on-both.ts";
import { outcomesOf, refusal } from "../../../test/support/refusal.ts";
import { findFile } from "../get-file.ts";
import { type Clock, type Domain, openDomain, repository, targetPath } from "./open-domain.ts";
import { createSigners, openRepository, publishRoot } from "./tuf-server.ts";

const hour = 3600 * 1000;
const day = 24 * hour;

describeStores("a publication", (makePlace) => {
  async function open(clock: Clock = { now: new Date() }, place?: Place): Promise<Domain> {
    return openDomain(await (place ?? (await makePlace())).open(), clock);
  }
  const readTargets = async (domain: Domain, path: string) =>
    Object.keys((await domain.read(path)).signed.targets);
  const listStates = async ({ tuf }: Domain) =>
    (await tuf.listTargets({ repository })).targets.map(
      ({ path, targetStatus }) => `${path} ${targetStatus}`,
    );

  it("needs a root", async () => {
    const domain = await open();
    const { walletId } = await createSigners(domain, 1, 1);
    await domain.tuf.createRepository({ repository, walletId });
    expect(await refusal(domain.tuf.publish({ repository }))).toMatchObject({ reason: "ROOT_MISSING" });
    expect(await refusal(domain.tuf.publish({ repository: "other" }))).toMatchObject({
      reason: "REPOSITORY_NOT_FOUND",
    });
  });

  it("publishes drafts, replacements and removals together, and nothing before", async () => {
    const domain = await open();
    await openRepository(domain);
    await domain.upload("a.bin", "first");
    await domain.upload("a.bin", "second");
    await domain.upload("b.bin", "b");
    expect(domain.removed).toEqual(["a.bin 1 first"]);
    expect(await domain.has(targetPath("b.bin", "b"))).toBe(false);
    expect(await domain.tuf.publish({ repository })).toMatchObject({ added: 2, removed: 0 });
    expect(await readTargets(domain, "metadata/2.targets.json")).toEqual(["a.bin", "b.bin"]);
    expect(await domain.has(targetPath("b.bin", "b"))).toBe(true);
    expect(await domain.has(targetPath("b.bin", "b", "sha512"))).toBe(true);
    expect(await domain.has(targetPath("a.bin", "first"))).toBe(false);

    await domain.upload("a.bin", "third");
    await domain.tuf.removeTarget({ repository, path: "b.bin" });
    expect(await refusal(domain.tuf.removeTarget({ repository, path: "b.bin" }))).toMatchObject({
      reason: "TARGET_NOT_FOUND",
    });
    expect(await listStates(domain)).toEqual(["a.bin REMOVING", "b.bin REMOVING", "a.bin DRAFT"]);
    const { repository: described } = await domain.tuf.getRepository({ repository });
    expect(described).toMatchObject({ targetCount: 2, changeCount: 2 });
    expect(await domain.tuf.publish({ repository })).toMatchObject({ added: 1, removed: 1 });
    const { hashes } = present((await domain.read("metadata/3.targets.json")).signed.targets["a.bin"]);
    expect(targetPath("a.bin", "third")).toContain(hashes.sha256);
    expect(await listStates(domain)).toEqual(["a.bin PUBLISHED"]);
    // A client with the former snapshot can still read what it names.
    expect(await domain.has(targetPath("b.bin", "b"))).toBe(true);
  });

  it("counts only what it published, even if a draft arrives meanwhile", async () => {
    const domain = await open();
    await openRepository(domain);
    await domain.upload("a.bin", "a");
    const { tuf } = domain.deps;
    const { findRepository } = tuf;
    let isFirst = true;
    tuf.findRepository = async (name, options) => {
      const found = await findRepository(name, options);
      if (options === undefined && isFirst) {
        isFirst = false;
        await domain.upload("late.bin", "late");
      }
      return found;
    };
    expect(await domain.tuf.publish({ repository })).toMatchObject({ added: 1, removed: 0 });
    expect(await readTargets(domain, "metadata/2.targets.json")).toEqual(["a.bin"]);
    expect(await domain.tuf.publish({ repository })).toMatchObject({ added: 1, removed: 0 });
  });

  it("keeps a published target whose replacement is withdrawn", async () => {
    const domain = await open();
    await openRepository(domain);
    await domain.upload("a.bin", "old");
    await domain.tuf.publish({ repository });
    await domain.upload("a.bin", "new");
    await domain.tuf.removeTarget({ repository, path: "a.bin" });
    expect(await listStates(domain)).toEqual(["a.bin PUBLISHED"]);
    await domain.tuf.publish({ repository });
    expect(await domain.has(targetPath("a.bin", "old"))).toBe(true);
    expect(domain.removed).toEqual(["a.bin 2 new"]);
  });

  it("names the versions and hashes of all metadata, in one consistent snapshot", async () => {
    const domain = await open();
    await openRepository(domain);
    await domain.tuf.setDelegation({ repository, role: "esp32" });
    await domain.tuf.publish({ repository });
    const { meta } = (await domain.read("metadata/2.snapshot.json")).signed;
    expect(meta).toMatchObject({ "targets.json": { version: 2 }, "esp32.json": { version: 1 } });
    const timestamp = await domain.read("metadata/timestamp.json");
    expect(timestamp.signed.meta).toMatchObject({
      "snapshot.json": { version: 2, hashes: {}, length: expect.any(Number) },
    });
  });

  it("moves a device type's targets to its role and back, and never forgets a role in snapshots", async () => {
    const domain = await open();
    await openRepository(domain);
    for (const path of ["esp32/app.bin", "esp32/boot/loader.bin", "other.bin"])
      await domain.upload(path, path);
    await domain.tuf.setDelegation({ repository, role: "esp32" });
    await domain.tuf.publish({ repository });
    expect(await readTargets(domain, "metadata/1.esp32.json")).toEqual(["esp32/app.bin"]);
    expect(await readTargets(domain, "metadata/2.targets.json")).toEqual([
      "esp32/boot/loader.bin",
      "other.bin",
    ]);
    const [delegated] = present((await domain.read("metadata/2.targets.json")).signed.delegations).roles;
    const first = await domain.read("metadata/1.esp32.json");
    expect(first.signatures.map(({ keyid }) => keyid)).toEqual(present(delegated).keyids);

    // Another key, by the targets role alone.
    await domain.tuf.setDelegation({ repository, role: "esp32" });
    const { repository: described } = await domain.tuf.getRepository({ repository });
    expect(described?.roles.find(({ role }) => role === "esp32")).toMatchObject({
      hasChanged: true,
      version: 1,
    });
    await domain.tuf.publish({ repository });
    const [rotated] = present((await domain.read("metadata/3.targets.json")).signed.delegations).roles;
    const second = await domain.read("metadata/2.esp32.json");
    expect(second.signatures.map(({ keyid }) => keyid)).toEqual(present(rotated).keyids);
    expect(rotated?.keyids).not.toEqual(delegated?.keyids);

    await domain.tuf.removeDelegation({ repository, role: "esp32" });
    expect(await refusal(domain.tuf.removeDelegation({ repository, role: "esp32" }))).toMatchObject({
      reason: "DELEGATION_NOT_FOUND",
    });
    await domain.tuf.publish({ repository });
    expect(await readTargets(domain, "metadata/4.targets.json")).toContain("esp32/app.bin");
    expect((await domain.read("metadata/4.snapshot.json")).signed.meta).toMatchObject({
      "esp32.json": { version: 2 },
    });
    await domain.tuf.setDelegation({ repository, role: "esp32" });
    await domain.tuf.publish({ repository });
    expect((await domain.read("metadata/5.snapshot.json")).signed.meta).toMatchObject({
      "esp32.json": { version: 3 },
    });
  });

  it("describes a new delegation with the state of its new key", async () => {
    const domain = await open();
    await openRepository(domain);
    const { role } = await domain.tuf.setDelegation({ repository, role: "esp32" });
    expect(role).toMatchObject({ version: 0, keyState: "ACTIVE", hasChanged: true });
  });

  it("accepts 31 delegations, as many as clients visit", async () => {
    const domain = await open();
    await openRepository(domain);
    const { keys } = await domain.kms.listKeys({});
    const key = present(keys[0]).keyId;
    for (let i = 0; i < 31; i++) await domain.tuf.setDelegation({ repository, role: `type-${i}`, key });
    const more = domain.tuf.setDelegation({ repository, role: "one-more", key });
    expect(await refusal(more)).toMatchObject({ reason: "FIELD_INVALID", fields: ["role"] });
  });

  it("is complete when callers race, and each call is answered", async () => {
    const domain = await open();
    await openRepository(domain);
    const uploads = Array.from({ length: 5 }, (_, i) => domain.upload(`${i}.bin`, String(i)));
    const calls = Array.from({ length: 5 }, () => domain.tuf.publish({ repository }));
    expect(await outcomesOf([...uploads, ...calls])).toEqual({ answered: 10, refusals: [] });
    await domain.tuf.publish({ repository });
    expect((await domain.read("metadata/timestamp.json")).signed.version).toBe(7);
    expect(await readTargets(domain, "metadata/7.targets.json")).toEqual([
      "0.bin",
      "1.bin",
      "2.bin",
      "3.bin",
      "4.bin",
    ]);
  });

  it("records each use of a key, and none of metadata that were not published", async () => {
    const domain = await open();
    await openRepository(domain);
    await Promise.all([1, 2, 3].map(() => domain.tuf.publish({ repository })));
    const { auditLog } = await domain.kms.getAuditLog({ operation: "SIGN" });
    const signed = auditLog.map(({ details }) => details.replace("input=tuf, repository=firmware, ", ""));
    const expected = [1, 2, 3, 4].flatMap((version) =>
      ["targets", "snapshot", "timestamp"].map((role) => `role=${role}, version=${version}`),
    );
    expect(signed.sort()).toEqual(expected.sort());
  });

  it("is renewed by one of all replicas when a third of the validity is left", async () => {
    const place = await makePlace();
    const clock = { now: new Date() };
    const [one, two] = [await open(clock, place), await open(clock, place)];
    await openRepository(one);
    const readVersions = async () => [
      (await two.read("metadata/timestamp.json")).signed.version,
      present(Object.values((await two.read("metadata/timestamp.json")).signed.meta)[0]).version,
    ];
    const pass = async (ms: number): Promise<void> => {
      clock.now = new Date(clock.now.getTime() + ms);
      await Promise.all([one.renewDue(), two.renewDue()]);
    };
    await pass(15 * hour);
    expect(await readVersions()).toEqual([1, 1]);
    await pass(2 * hour);
    expect(await readVersions()).toEqual([2, 1]);
    expect(one.renewals() + two.renewals()).toBe(1);
    await pass(5 * day);
    expect(await readVersions()).toEqual([3, 2]);
    expect(one.renewals() + two.renewals()).toBe(2);
    await Promise.all([one.renewDue(), two.renewDue()]);
    expect(await readVersions()).toEqual([3, 2]);
    const { auditLog } = await one.kms.getAuditLog({ operation: "SIGN" });
    expect(auditLog.filter(({ user }) => user === "schedule")).toHaveLength(3);
  });

  it("that cannot be renewed is retried, and succeeds when its key is usable again", async () => {
    const clock = { now: new Date() };
    const domain = await open(clock);
    await openRepository(domain);
    const { roles } = present((await domain.tuf.getRepository({ repository })).repository);
    const { keyId } = present(roles.find(({ role }) => role === "timestamp"));
    await domain.kms.disableKey({ keyId });
    clock.now = new Date(clock.now.getTime() + 20 * hour);
    await domain.renewDue();
    expect((await domain.read("metadata/timestamp.json")).signed.version).toBe(1);
    await domain.kms.enableKey({ keyId });
    clock.now = new Date(clock.now.getTime() + hour);
    await domain.renewDue();
    expect((await domain.read("metadata/timestamp.json")).signed.version).toBe(2);
  });

  it("removes files a week after their successors, but never a root", async () => {
    const clock = { now: new Date() };
    const domain = await open(clock);
    const { signers } = await openRepository(domain);
    const { proposal } = await domain.tuf.proposeRoot({ repository });
    await publishRoot(domain, present(proposal), signers.slice(0, 2));
    await domain.upload("a.bin", "old");
    await domain.tuf.publish({ repository });
    await domain.upload("a.bin", "new");
    await domain.tuf.publish({ repository });
    clock.now = new Date(clock.now.getTime() + 6 * day);
    await domain.tuf.publish({ repository });
    const paths = [
      "metadata/1.root.json",
      "metadata/2.targets.json",
      "metadata/3.targets.json",
      targetPath("a.bin", "old"),
    ];
    expect(await Promise.all(paths.map(domain.has))).toEqual([true, true, true, true]);
    clock.now = new Date(clock.now.getTime() + 2 * day);
    await domain.tuf.publish({ repository });
    expect(await Promise.all(paths.map(domain.has))).toEqual([true, false, true, false]);
    expect(domain.removed).toEqual(["a.bin 1 old"]);
    expect(await domain.has(targetPath("a.bin", "new"))).toBe(true);
  });

  it("serves the newest of equal contents, which stays longest", async () => {
    const domain = await open();
    await openRepository(domain);
    for (let i = 0; i < 2; i++) {
      await domain.upload("a.bin", "same");
      await domain.tuf.publish({ repository });
    }
    const read: string[] = [];
    domain.deps.contents.read = async function* (contentId) {
      read.push(contentId);
      yield Buffer.from("same");
    };
    const file = present(await findFile(domain.deps, repository, targetPath("a.bin", "same")));
    await Array.fromAsync(file.read({ from: 0, to: file.length }));
    expect(read).toEqual(["a.bin 2 same"]);
  });

  it("has as many targets as clients read; more are refused", async () => {
    const domain = await open();
    await openRepository(domain);
    const { tuf, store } = domain.deps;
    const add = (from: number, to: number) =>
      store.write(async (transaction) => {
        const found = await tuf.findRepository(repository, transaction);
        const toRow = (i: number) => ({
          position: i + 1,
          ...tuf.targets.toTaggedRow({
            repository,
            // 255 characters, so that fewer targets suffice.
            path: `${"x".repeat(200)}/${String(i).padStart(54, "0")}`,
            contentId: String(i),
            owner: found.owner,
            version: "",
            deviceTypes: [],
            length: 1,
            sha256: new Uint8Array(32),
            sha512: new Uint8Array(64),
            addedSequence: found.sequence + 1,
            removedSequence: undefined,
            uploadedAt: new Date(),
          }),
        });
        for (let i = from; i < to; i += 50) {
          const rows = Array.from({ length: 50 }, (_, j) => toRow(i + j));
          await anyTable(transaction.db).insertInto("tuf_targets").values(rows).execute();
        }
        await tuf.change(transaction, found, { sequence: found.sequence + 1 });
      });
    await add(0, 10_000);
    await domain.tuf.publish({ repository });
    await add(10_000, 10_050);
    expect(await refusal(domain.tuf.publish({ repository }))).toMatchObject({ reason: "ROLE_TOO_LARGE" });
    expect(await domain.has("metadata/3.targets.json")).toBe(false);
  });
});
