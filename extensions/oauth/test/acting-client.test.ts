/** A client that calls for a user: what the audit log says about it, and what it shares with the user. */
import { expect, it } from "vitest";
import { type AccessServer, describeAccess, makePeople } from "../../../test/access/access-server.ts";
import { logOf } from "../../../test/access/read-identity-log.ts";
import { present } from "../../../test/services/answers.ts";
import { refusal } from "../../../test/support/refusal.ts";
import { claimsOf, exchange, makeClient, requestToken } from "./tools.ts";

const data = new Uint8Array(1);
const scopes = ["kms.read", "kms.sign", "kms.admin", "audit.read"];

describeAccess("a client that acts for a user", (shared) => {
  /** Makes a client, and a token with which it acts for a user. */
  const actFor = async (server: AccessServer, token: string) => {
    const name = await makeClient(server, { scopes, mayExchange: true });
    const { body } = await exchange(server, name, token);
    const by = `client=${name}, token=${claimsOf(body.access_token).jti}`;
    return { name, by, kms: server.connect(`Bearer ${body.access_token}`).kms };
  };

  it("is named in each entry that its calls cause, with the token ID of the identity log", async () => {
    const server = await shared();
    const [ada, auditor] = await makePeople(server, "user", "auditor");
    const client = await actFor(server, ada.token);
    const { keyId } = present((await ada.kms.createKey({ algorithm: "ML-DSA-44" })).result);
    await ada.kms.sign({ keyId, data });
    await client.kms.sign({ keyId, data });
    await client.kms.disableKey({ keyId });
    for (const { kms } of [ada, client]) await refusal(kms.sign({ keyId, data }));
    const { auditLog } = await auditor.kms.getAuditLog({ keyId, user: ada.name });
    expect(auditLog.map(({ operation, details }) => `${operation} ${details}`)).toEqual([
      "CREATE algorithm=ML-DSA-44, usage=SIGN",
      "SIGN input=data",
      `SIGN input=data, ${client.by}`,
      `DISABLE stateBefore=ACTIVE, ${client.by}`,
      "SIGN reason=KEY_STATE_INVALID",
      `SIGN reason=KEY_STATE_INVALID, ${client.by}`,
    ]);
    const { entries } = await logOf(auditor).getIdentityLog({
      subject: client.name,
      operation: "ISSUE_TOKEN",
    });
    expect(entries[0]?.details).toContain(client.by.split(", ")[1]);
  });

  it("is named with its own token too", async () => {
    const server = await shared();
    const name = await makeClient(server, { scopes });
    const token = (await requestToken(server, name)).body.access_token;
    const { kms } = server.connect(`Bearer ${token}`);
    const { keyId } = present((await kms.createKey({ algorithm: "ML-DSA-44" })).result);
    const { auditLog } = await kms.getAuditLog({ keyId });
    const by = `client=${name}, token=${claimsOf(token).jti}`;
    expect(auditLog).toMatchObject([{ user: name, details: `algorithm=ML-DSA-44, usage=SIGN, ${by}` }]);
  });

  it("changes the state of a key as its user does", async () => {
    const server = await shared();
    const { token } = await server.makePerson();
    const { kms } = await actFor(server, token);
    const { keyId } = present((await kms.createKey({ algorithm: "ML-DSA-44" })).result);
    const next = present((await kms.rotateKey({ keyId })).newKey).keyId;
    const read = async () => present((await kms.getKey({ keyId })).result);
    expect(await read()).toMatchObject({ status: "ROTATED", replacedBy: next });
    await kms.destroyKey({ keyId, afterSeconds: 3600 });
    await kms.restoreKey({ keyId });
    expect(await read()).toMatchObject({ status: "DISABLED" });
    await kms.enableKey({ keyId });
    expect(await read()).toMatchObject({ status: "ROTATED" });
  });

  it("revokes a grant, which stays ended if its record is restored in the database", async () => {
    const server = await shared();
    const [ada, bob] = await makePeople(server);
    const { kms } = await actFor(server, ada.token);
    const { keyId } = present((await kms.createKey({ algorithm: "ML-DSA-44" })).result);
    const created = await kms.createGrant({ keyId, grantee: bob.name, operations: ["SIGN"] });
    const { grantId } = present(created.grant);
    await bob.kms.sign({ keyId, data });
    const rows = await server.tamper((db) =>
      db.selectFrom("kms_grants").selectAll().where("grant_id", "=", grantId).execute(),
    );
    await kms.revokeGrant({ grantId });
    await server.tamper((db) => db.insertInto("kms_grants").values(rows).execute());
    expect((await refusal(bob.kms.sign({ keyId, data }))).reason).toBe("KEY_NOT_FOUND");
  });

  it("has its own idempotency keys", async () => {
    const server = await shared();
    const { kms, token } = await server.makePerson();
    const { kms: one } = await actFor(server, token);
    const { kms: other } = await actFor(server, token);
    const headers = { "idempotency-key": "E1" };
    const create = async (client: typeof kms) =>
      (await client.createKey({ algorithm: "ML-DSA-44" }, { headers })).result?.keyId;
    const first = [await create(kms), await create(one), await create(other)];
    expect(new Set(first).size).toBe(3);
    expect([await create(kms), await create(one), await create(other)]).toEqual(first);
  });
});
