/** Repositories on a server with accounts: for whom the schedule and administrators sign, and until when. */
import { describe, expect, it } from "vitest";
import type { Role } from "../../../src/calls/call-values.ts";
import { createUserStore } from "../../../src/identity/users.ts";
import { present } from "../../../test/services/answers.ts";
import { describeStores } from "../../../test/support/on-both.ts";
import { describeRefusal, failureOf, outcomeOf } from "../../../test/support/refusal.ts";
import { type Clock, openDomain } from "./open-domain.ts";
import { createSigners, proposeRoot, publishRoot, repository } from "./tuf-server.ts";

const hour = 3600 * 1000;

describeStores("a repository of an account", (makePlace) => {
  async function open() {
    const clock: Clock = { now: new Date() };
    const store = await (await makePlace()).open();
    const users = createUserStore(store);
    const domain = await openDomain(store, clock, users);
    const makePerson = async (name: string, role: Exclude<Role, "device"> = "user") => {
      await users.add({ name, role, passwordHash: "none" }, clock.now);
      const { userId } = present(await users.find(name));
      const expiresAt = new Date(clock.now.getTime() + 365 * 24 * hour);
      const caller = { subject: name, role, userId, issuedAt: clock.now, expiresAt };
      const withScopes = (scopes: readonly string[]) => domain.connect({ ...caller, scopes });
      return { userId, withScopes, ...domain.connect(caller) };
    };
    const [ada, mal, admin] = [
      await makePerson("ada"),
      await makePerson("mal"),
      await makePerson("root", "admin"),
    ];
    const { keyId } = present((await ada.kms.createKey({ algorithm: "ML-DSA-65" })).result);
    return {
      ...domain,
      ...{ users, store, ada, mal, admin, keyId },
      /** Creates and publishes the repository of mal, whose snapshot and timestamp have these keys. */
      async publishAs(key: string): Promise<void> {
        const { walletId, signers } = await createSigners(mal, 2, 2);
        const keys = key === "" ? {} : { snapshotKey: key, timestampKey: key };
        await mal.tuf.createRepository({ repository, walletId, ...keys });
        await publishRoot(mal, await proposeRoot(mal), signers);
      },
      /** Ada lets mal sign with her key. */
      grant: () => ada.kms.createGrant({ keyId, grantee: "mal", operations: ["SIGN", "GET_KEY"] }),
      /** Does what is due after some hours, and returns the version of the timestamp. */
      async pass(hours: number): Promise<number> {
        clock.now = new Date(clock.now.getTime() + hours * hour);
        await domain.renewDue();
        return (await domain.read("metadata/timestamp.json")).signed.version;
      },
      /** The details of what the schedule or an administrator did with keys. */
      async listBy(user: string) {
        const { auditLog } = await admin.kms.getAuditLog({ operation: "SIGN", user });
        return auditLog.map(({ outcome, details }) => `${outcome} ${details}`);
      },
    };
  }

  it("is renewed for it with a key that another user granted, until the account is removed", async () => {
    const { users, mal, admin, grant, publishAs, pass, listBy, keyId } = await open();
    await grant();
    await publishAs(keyId);
    expect(await pass(17)).toBe(2);
    const done = "OK input=tuf, repository=firmware, role=timestamp, version=2, for=mal";
    expect(await listBy("schedule")).toEqual([done]);
    await users.remove("mal");
    expect(await pass(17)).toBe(2);
    expect(await listBy("schedule")).toEqual([done, `REFUSED reason=GRANT_MISSING, for=${mal.userId}`]);
    // An administrator acts for the account, too.
    expect(await outcomeOf(admin.tuf.publish({ repository }))).toBe("GRANT_MISSING");
    // A new account of the same name is a different account.
    await users.add({ name: "mal", role: "user", passwordHash: "none" }, new Date());
    expect(await pass(17)).toBe(2);
  });

  it("keeps being renewed with its own keys, until an administrator disables them", async () => {
    const { users, mal, admin, publishAs, pass, listBy } = await open();
    await publishAs("");
    await users.remove("mal");
    expect(await pass(17)).toBe(2);
    const done = `OK input=tuf, repository=firmware, role=timestamp, version=2, for=${mal.userId}`;
    expect(await listBy("schedule")).toEqual([done]);
    const { roles } = present((await admin.tuf.getRepository({ repository })).repository);
    await admin.kms.disableKey({ keyId: present(roles.find(({ role }) => role === "timestamp")).keyId });
    expect(await pass(17)).toBe(2);
  });

  it("is not renewed if the account is removed while the schedule signs", async () => {
    const { users, grant, publishAs, pass, keyId, deps, listBy } = await open();
    await grant();
    await publishAs(keyId);
    const { write } = deps.store;
    deps.store.write = async (...args) => {
      deps.store.write = write;
      await users.remove("mal");
      return write(...args);
    };
    expect(await pass(17)).toBe(1);
    expect([deps.store.write === write, await listBy("schedule")]).toEqual([true, []]);
  });

  it("names its owner when an administrator signs for it, and not when the owner does", async () => {
    const { admin, publishAs, listBy } = await open();
    await publishAs("");
    await admin.tuf.publish({ repository });
    const details = ["targets", "snapshot", "timestamp"].map((role) => `role=${role}, version=2, for=mal`);
    expect(
      (await listBy("root")).map((text) => text.replace("OK input=tuf, repository=firmware, ", "")),
    ).toEqual(details);
    expect((await listBy("mal")).filter((text) => text.includes("for="))).toEqual([]);
  });

  describe("a token with scopes", () => {
    const own = ["tuf.read", "tuf.write", "defi.read", "defi.write"];
    type Calls = ReturnType<Awaited<ReturnType<typeof open>>["connect"]>["tuf"];

    it.each<[string, string, (tuf: Calls, walletId: string, key: string) => Promise<unknown>]>([
      [
        "kms.sign",
        "a new repository names existing keys",
        (tuf, walletId, targetsKey) =>
          tuf.createRepository({
            ...{ repository: "other", walletId, targetsKey },
            ...{ snapshotKey: targetsKey, timestampKey: targetsKey },
          }),
      ],
      [
        "kms.admin",
        "a new repository needs keys",
        (tuf, walletId) => tuf.createRepository({ repository: "other", walletId }),
      ],
      [
        "kms.sign",
        "a root names existing keys",
        (tuf, _, snapshotKey) => tuf.proposeRoot({ repository, snapshotKey }),
      ],
      ["kms.admin", "a root needs keys", (tuf) => tuf.proposeRoot({ repository, newKeys: ["targets"] })],
      [
        "kms.sign",
        "a delegation names an existing key",
        (tuf, _, key) => tuf.setDelegation({ repository, role: "esp32", key }),
      ],
      ["kms.admin", "a delegation needs a key", (tuf) => tuf.setDelegation({ repository, role: "esp32" })],
    ])("needs %s if %s", async (scope, _, call) => {
      const { mal, publishAs } = await open();
      await publishAs("");
      const { walletId } = await createSigners(mal, 2, 2);
      const { keyId } = present((await mal.kms.createKey({ algorithm: "ML-DSA-65" })).result);
      const otherScope = scope === "kms.sign" ? "kms.admin" : "kms.sign";
      const callWith = (scopes: readonly string[]) => call(mal.withScopes(scopes).tuf, walletId, keyId);
      const refused = await failureOf(callWith([...own, otherScope]));
      expect(describeRefusal(refused).reason).toBe("SCOPE_MISSING");
      expect(refused.message).toContain(`needs the scope ${scope},`);
      expect(await outcomeOf(callWith([...own, scope]))).toBe("answer");
    });

    it("needs no scope of the key service to publish, nor to propose a root with the same keys", async () => {
      const { mal, publishAs } = await open();
      await publishAs("");
      const { tuf } = mal.withScopes(own);
      expect(await outcomeOf(tuf.publish({ repository }))).toBe("answer");
      expect(await outcomeOf(tuf.proposeRoot({ repository }))).toBe("answer");
    });
  });
});
