/** pqc.IdentityLogService: who can read the identity log, what it contains, and that anyone can verify it. */
import { inspect } from "node:util";
import { expect, it, vi } from "vitest";
import { auditStart, verifyAuditCheckpoint, verifyAuditEntries } from "../../src/client/verify-audit.ts";
import { present, readPages } from "../services/answers.ts";
import { hashCheaply, password } from "../support/passwords.ts";
import { refusal } from "../support/refusal.ts";
import { type AccessServer, describeAccess } from "./access-server.ts";
import { logOf, readUntilRefused } from "./read-identity-log.ts";

vi.mock("node:crypto", async (load) => (await import("../support/cheap-scrypt.ts")).cheapen(await load()));

let names = 0;

/** A person with a password, who logs in once with it and once with a wrong one. */
async function logInTwice({ office, connect }: AccessServer): Promise<string> {
  names += 1;
  const username = `log-in ${names}`;
  await office.users.add({ name: username, role: "user", passwordHash: hashCheaply(password) }, new Date());
  const { tokens } = connect();
  await tokens.issueToken({ username, password });
  await refusal(tokens.issueToken({ username, password: "a wrong password for ada" }));
  return username;
}

describeAccess("the identity log API", (shared) => {
  it("shows user creation, log-ins and failed log-ins, but no password", async () => {
    const server = await shared();
    const name = await logInTwice(server);
    const entries = await readUntilRefused(logOf(await server.makePerson("auditor")), name);
    expect(
      entries.map(({ operation, user, outcome, details }) => [operation, user, outcome, details]),
    ).toEqual([
      ["CREATE_USER", "operator", "OK", expect.stringMatching(/^role=user, generation=[0-9a-f-]{36}$/)],
      ["LOG_IN", name, "OK", ""],
      ["LOG_IN", name, "REFUSED", "reason=LOGIN_FAILED"],
    ]);
    expect(entries[1]).toMatchObject({ subject: name, clientAddress: "127.0.0.1" });
    expect(entries[1]?.requestId).not.toBe("");
    expect(inspect(entries)).not.toMatch(/horse|a wrong password|scrypt/);
  });

  it("rejects texts and times that no entry can have", async () => {
    const server = await shared();
    const person = await server.makePerson("admin");
    const invalid = expect.objectContaining({ code: "InvalidArgument", reason: "FIELD_INVALID" });
    for (const fields of [
      { user: "a\0" },
      { from: { seconds: 2n ** 62n, nanos: 0 } },
      { to: { seconds: -(10n ** 15n), nanos: 0 } },
      { from: { seconds: 0n, nanos: 2_000_000_000 } },
    ]) {
      expect(await refusal(logOf(person).getIdentityLog(fields))).toEqual(invalid);
      expect(await refusal(person.kms.getAuditLog(fields))).toEqual(invalid);
    }
  });

  it("is a chain that anyone can recompute, with an end signed by the server", async () => {
    const server = await shared();
    await logInTwice(server);
    const log = logOf(await server.makePerson("admin"));
    const { checkpoint, valid } = await log.verifyIdentityLog({});
    const { sequence, entryHash, publicKey } = present(checkpoint);
    const { rows } = await readPages(
      (pageToken) => log.getIdentityLog({ pageSize: 3, pageToken }),
      (page) => page.entries,
    );
    const verdict = await verifyAuditEntries(rows.slice(0, sequence), auditStart);
    expect([valid, verdict]).toEqual([true, { valid: true, head: { sequence, entryHash } }]);
    expect(await verifyAuditCheckpoint(present(checkpoint), publicKey)).toBe(true);
    // The same key signs the key log.
    const relabelled = { ...present(checkpoint), $typeName: "kms.AuditCheckpoint" as const };
    expect(await verifyAuditCheckpoint(relabelled, publicKey)).toBe(false);
  });

  it("can be watched, including entries written by commands and other servers", async () => {
    const server = await shared();
    const log = logOf(await server.makePerson("auditor"));
    names += 1;
    const name = `watched ${names}`;
    const answers = log.watchIdentityLog({ subject: name, afterSequence: 0 })[Symbol.asyncIterator]();
    const next = async () => present((await answers.next()).value?.entry).operation;
    // The office uses a different store object than the server.
    await server.office.users.add({ name, role: "user", passwordHash: "none" }, new Date());
    expect(await next()).toBe("CREATE_USER");
    await server.office.users.setPassword(name, "none");
    expect(await next()).toBe("SET_PASSWORD");
    await server.office.users.remove(name);
    expect(await next()).toBe("REMOVE_USER");
    await answers.return?.(undefined);
  });

  it("rejects the key log's page tokens and positions", async () => {
    const person = await (await shared()).makePerson("admin");
    const { kms } = person;
    await Promise.all([kms.createKey({}), kms.createKey({})]);
    const { nextPageToken: pageToken } = await kms.getAuditLog({ pageSize: 1 });
    const invalid = expect.objectContaining({ code: "InvalidArgument", reason: "FIELD_INVALID" });
    expect(await refusal(logOf(person).getIdentityLog({ pageToken }))).toEqual(invalid);
    const beyond = logOf(person).watchIdentityLog({ afterSequence: 1e9 })[Symbol.asyncIterator]();
    expect(await refusal(beyond.next())).toEqual(invalid);
    expect(await refusal(logOf(person).getIdentityLog({ operation: "SIGN" }))).toEqual(invalid);
  });
});
