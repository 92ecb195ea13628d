/** Log-in with `--auth token`: who gets a token, how often one may fail, and that passwords never leak. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ConnectError } from "@connectrpc/connect";
import { pino } from "pino";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { RetryInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { listNetworks } from "../../src/http/networks.ts";
import type { Issuer } from "../../src/identity/issuer.ts";
import { createKnownNetworks } from "../../src/identity/known-networks.ts";
import { logInUsers } from "../../src/identity/log-in.ts";
import { createLoginThrottle } from "../../src/identity/login-throttle.ts";
import { createPasswordLane, type PasswordTurn } from "../../src/identity/password-lane.ts";
import { hashPassword, verifyPassword } from "../../src/identity/passwords.ts";
import type { UserStore } from "../../src/identity/users.ts";
import { endAfterAll } from "../support/at-end.ts";
import { hashCheaply, password } from "../support/passwords.ts";
import { failureOf, outcomesOf, type Refusal, refusal } from "../support/refusal.ts";
import { type AccessServer, startAccessServer, timeout } from "./access-server.ts";

vi.mock("node:crypto", async (load) => (await import("../support/cheap-scrypt.ts")).cheapen(await load()));

/** Entries and lines are tested in test/identity. */
const noRecords = { succeeded: async () => {}, failed: () => {} };

const wrong = "incorrect horse battery staple";
const failed: Refusal = { code: "Unauthenticated", reason: "LOGIN_FAILED" };
const limited: Refusal = { code: "ResourceExhausted", reason: "LOGIN_LIMITED" };

const atEnd = endAfterAll();
let shared: Promise<AccessServer> | undefined;
let names = 0;

/** The server shared by tests that use their own names and addresses. */
function startShared(): Promise<AccessServer> {
  const args = ["--max-failed-logins", "3", "--trusted-proxies", "127.0.0.1"];
  shared ??= startAccessServer({ atEnd, args });
  return shared;
}

/** Adds a user with a unique name. */
async function addUser(
  { office }: AccessServer,
  { hash = hashCheaply(password) } = {},
): Promise<{ username: string; password: string }> {
  const username = freshName();
  await office.users.add({ name: username, role: "user", passwordHash: hash }, new Date());
  return { username, password };
}

function freshName(): string {
  names += 1;
  return `user ${names}`;
}

/** Calls from a unique address behind a trusted proxy. */
function comeFrom(server: AccessServer, address = freshAddress()) {
  return server.connect(undefined, { "x-forwarded-for": address });
}

function freshAddress(): string {
  names += 1;
  return `10.0.${names >> 8}.${names & 255}`;
}

/** Each call that logs in. */
const logIns = {
  "pqc.PqcService.IssueToken": (server: AccessServer, address?: string) =>
    comeFrom(server, address).pqc.issueToken,
  "pqc.TokenService.IssueToken": (server: AccessServer, address?: string) =>
    comeFrom(server, address).tokens.issueToken,
};

for (const [name, connect] of Object.entries(logIns)) {
  describe(name, { timeout }, () => {
    it("gives a user who knows the password a token, which other calls accept", async () => {
      const server = await startShared();
      const user = await addUser(server);
      const { token } = await connect(server)(user);
      const { tokens } = server.connect(`Bearer ${token}`);
      expect(await tokens.getSecureData({})).toMatchObject({ subject: user.username });
    });

    it("rejects a wrong password, an empty password and an unknown name with the same message", async () => {
      const server = await startShared();
      const { username } = await addUser(server);
      const attempts = [
        { username, password: wrong },
        { username, password: "" },
        { username: freshName(), password: wrong },
        { username: freshName(), password: "" },
      ];
      const errors = [];
      for (const attempt of attempts) errors.push(await failureOf(connect(server)(attempt)));
      for (const error of errors) expect(await refusal(Promise.reject(error))).toEqual(failed);
      expect(new Set(errors.map(({ rawMessage }) => rawMessage))).toHaveLength(1);
      expect(new Set(errors.map(({ details }) => JSON.stringify(details)))).toHaveLength(1);
    });

    it("does not accept one user's password for another", async () => {
      const server = await startShared();
      const { username } = await addUser(server);
      const { password: others } = await addUser(server, { hash: hashCheaply(wrong) });
      await connect(server)({ username, password: others });
      expect(await refusal(connect(server)({ username, password: wrong }))).toEqual(failed);
    });

    it("revokes a user's tokens when the password changes, and rejects the old password", async () => {
      const server = await startShared();
      const user = await addUser(server);
      const { token } = await connect(server)(user);
      await server.office.users.setPassword(user.username, hashCheaply(wrong));
      expect(await refusal(server.connect(`Bearer ${token}`).tokens.getSecureData({}))).toEqual({
        code: "Unauthenticated",
        reason: "TOKEN_REVOKED",
      });
      expect(await refusal(connect(server)(user))).toEqual(failed);
      const { token: next } = await connect(server)({ ...user, password: wrong });
      await server.connect(`Bearer ${next}`).tokens.getSecureData({});
    });

    it("counts failures of both calls together", async () => {
      const server = await startShared();
      const { username } = await addUser(server);
      for (const other of Object.values(logIns))
        expect(await refusal(other(server)({ username, password: wrong }))).toEqual(failed);
      expect(await refusal(connect(server)({ username, password: wrong }))).toEqual(failed);
      expect(await refusal(connect(server)({ username, password: wrong }))).toEqual(limited);
    });
  });
}

describe("the limit on failed log-ins", { timeout }, () => {
  it("applies to a name, wherever its failures come from, and even for the right password", async () => {
    const server = await startShared();
    const user = await addUser(server);
    await failTimes(3, () => logInFrom(server, freshAddress(), { ...user, password: wrong }));
    expect(await refusal(logInFrom(server, freshAddress(), user))).toEqual(limited);
  });

  it("is the same for an unknown name", async () => {
    const server = await startShared();
    const username = freshName();
    await failTimes(3, () => logInFrom(server, freshAddress(), { username, password: wrong }));
    expect(await refusal(logInFrom(server, freshAddress(), { username, password: wrong }))).toEqual(limited);
  });

  it("for one name does not affect other names", async () => {
    const server = await startShared();
    const [user, other] = [await addUser(server), await addUser(server)];
    await failTimes(3, () => logInFrom(server, freshAddress(), { ...user, password: wrong }));
    expect(await logInFrom(server, freshAddress(), other)).toHaveProperty("token");
  });

  it("applies to an address, whatever names it tries, and even for the right password", async () => {
    const server = await startShared();
    const address = freshAddress();
    await failTimes(3, async () => {
      const { username } = await addUser(server);
      return logInFrom(server, address, { username, password: wrong });
    });
    const user = await addUser(server);
    expect(await refusal(logInFrom(server, address, user))).toEqual(limited);
    expect(await logInFrom(server, freshAddress(), user)).toHaveProperty("token");
  });

  it("applies to the whole /64 of an IPv6 address, which belongs to one caller", async () => {
    const server = await startShared();
    names += 1;
    const network = `2001:db8:0:${names}`;
    await failTimes(3, async () => {
      const { username } = await addUser(server);
      names += 1;
      return logInFrom(server, `${network}::${names}`, { username, password: wrong });
    });
    const user = await addUser(server);
    expect(await refusal(logInFrom(server, `${network}::ffff`, user))).toEqual(limited);
  });

  it("applies to the peer's address if no proxy is trusted, whatever it forwards", async () => {
    const args = ["--max-failed-logins", "3"];
    const server = await startAccessServer({ atEnd: onTestFinished, args });
    await failTimes(3, async () => {
      const { username } = await addUser(server);
      return logInFrom(server, freshAddress(), { username, password: wrong });
    });
    expect(await refusal(logInFrom(server, freshAddress(), await addUser(server)))).toEqual(limited);
  });

  it("reports when to retry", async () => {
    const server = await startShared();
    const user = await addUser(server);
    await failTimes(3, () => logInFrom(server, freshAddress(), { ...user, password: wrong }));
    const error = await failureOf(logInFrom(server, freshAddress(), user));
    expect(await refusal(Promise.reject(error))).toEqual(limited);
    const [retry] = error.findDetails(RetryInfoSchema);
    expect(Number(retry?.retryDelay?.seconds)).toBeGreaterThanOrEqual(1);
    expect(Number(retry?.retryDelay?.seconds)).toBeLessThanOrEqual(60);
  });

  it("does not count successful log-ins", async () => {
    const server = await startShared();
    const user = await addUser(server);
    const address = freshAddress();
    await failTimes(2, () => logInFrom(server, address, { ...user, password: wrong }));
    for (let i = 0; i < 5; i += 1) expect(await logInFrom(server, address, user)).toHaveProperty("token");
    await failTimes(1, () => logInFrom(server, address, { ...user, password: wrong }));
    expect(await refusal(logInFrom(server, address, user))).toEqual(limited);
  });

  it("does not revoke tokens of users with too many failures", async () => {
    const server = await startShared();
    const user = await addUser(server);
    const { token } = await logInFrom(server, freshAddress(), user);
    await failTimes(3, () => logInFrom(server, freshAddress(), { ...user, password: wrong }));
    const { tokens } = server.connect(`Bearer ${token}`);
    expect(await tokens.getSecureData({})).toMatchObject({ subject: user.username });
  });

  it.each([
    ["for one name", (username: string) => username],
    ["for as many names, from one address", () => freshName()],
  ])("holds for a thousand concurrent attempts: %s", async (_, nameOf) => {
    const args = ["--max-failed-logins", "4", "--max-calls", "2000", "--max-calls-per-user", "0"];
    const server = await startAccessServer({ atEnd: onTestFinished, args });
    const { username } = await addUser(server);
    const { tokens } = server.connect();
    const calls = Array.from({ length: 1000 }, () =>
      tokens.issueToken({ username: nameOf(username), password: wrong }),
    );
    const { answered, refusals } = await outcomesOf(calls);
    const countOf = (wanted: string) => refusals.filter(({ reason }) => reason === wanted).length;
    expect({ answered, failed: countOf("LOGIN_FAILED"), limited: countOf("LOGIN_LIMITED") }).toEqual({
      answered: 0,
      failed: 4,
      limited: 996,
    });
  });
});

describe("the limit on failed log-ins, for networks and known users", { timeout: 180_000 }, () => {
  /** Log-ins of two users, of which 3 may fail per minute. */
  function start() {
    const turns: PasswordTurn[] = [];
    const { from } = createLogIn({
      throttle: createLoginThrottle(3),
      verifyPassword: (given, hash, turn) => {
        turns.push(turn);
        return verifyPassword(given, hash);
      },
    });
    return { from, turns };
  }

  it.each([
    ["/56", (i: number) => `2001:db8:0:120${i}::1`, "2001:db8:0:12ff::1"],
    ["/48", (i: number) => `2001:db8:0:${i}00::1`, "2001:db8:0:ffff::1"],
  ])("applies to the whole %s of an IPv6 address", async (_, addressOf, inside) => {
    const { from } = start();
    for (let i = 1; i <= 3; i += 1)
      expect(await refusal(from(addressOf(i), freshName(), wrong))).toEqual(failed);
    expect(await refusal(from(inside, "ada"))).toEqual(limited);
    expect(await from("2001:db8:1::1", "ada")).toHaveProperty("token");
  });

  it("for a name does not lock its user out where they have logged in before", async () => {
    const { from } = start();
    await from("192.0.2.1", "ada");
    for (let i = 1; i <= 3; i += 1) await refusal(from(`198.51.100.${i}`, "ada", wrong));
    expect(await refusal(from("198.51.100.4", "ada"))).toEqual(limited);
    expect(await from("192.0.2.1", "ada")).toHaveProperty("token");
  });

  it("for a network does not lock out users who have logged in there before", async () => {
    const { from } = start();
    await from("192.0.2.1", "ada");
    await failTimes(3, () => from("192.0.2.1", freshName(), wrong));
    expect(await refusal(from("192.0.2.1", "grace"))).toEqual(limited);
    expect(await from("192.0.2.1", "ada")).toHaveProperty("token");
  });

  it("also applies to a known user in a known network", async () => {
    const { from } = start();
    await from("192.0.2.1", "ada");
    await failTimes(3, () => from("192.0.2.1", "ada", wrong));
    expect(await refusal(from("192.0.2.1", "ada"))).toEqual(limited);
  });

  it("does not treat a network as known after a failed log-in", async () => {
    const { from } = start();
    await failTimes(3, () => from("192.0.2.1", "ada", wrong));
    expect(await refusal(from("192.0.2.1", "ada"))).toEqual(limited);
  });

  it("queues a check under its widest network, and a known user separately", async () => {
    const { from, turns } = start();
    await from("2001:db8:1:2::3", "ada");
    await from("2001:db8:1:2::4", "ada");
    expect(turns).toEqual([
      { network: "2001:db8:1::/48", knownName: undefined },
      { network: "2001:db8:1:2::/64", knownName: "ada" },
    ]);
  });
});

describe("the password lane", () => {
  it("serves networks in turn, and known users first", async () => {
    const { lane, verify } = createPasswordLane({ maxChecks: 1, maxWaitMs: 60_000 });
    const hash = hashCheaply(password);
    const order: string[] = [];
    const ask = async (network: string, knownName?: string): Promise<void> => {
      await verify(password, hash, { network, knownName });
      order.push(knownName ?? network);
    };
    const asked = ["m", "m", "m", "m"].map((network) => ask(network));
    asked.push(ask("a"), ask("b"), ask("m", "grace"));
    expect([lane.waiting, lane.callers]).toEqual([6, 4]);
    await Promise.all(asked);
    expect(order).toEqual(["m", "grace", "m", "a", "b", "m", "m"]);
  });

  it("rejects only the network whose backlog is too long", async () => {
    const { lane, verify } = createPasswordLane({ maxChecks: 1, maxWaitMs: 600 });
    const hash = hashCheaply(password);
    const ask = (network: string) => verify(password, hash, { network, knownName: undefined });
    const asked = [ask("m"), ask("m"), ask("m")];
    await expect(ask("m")).rejects.toMatchObject({ name: "CryptoBusy" });
    expect(await ask("a")).toBe(true);
    expect(await Promise.all(asked)).toEqual([true, true, true]);
    expect(lane.refused).toBe(1);
  });
});

describe("a password that waits to be checked", () => {
  it("is not checked after its caller has left, and does not count as a failure", async () => {
    const { lane, verify } = createPasswordLane({ maxChecks: 1, maxWaitMs: 60_000 });
    const hash = hashCheaply(password);
    const turn = { network: "m", knownName: undefined };
    const throttle = createLoginThrottle(2);
    const { logIn } = createLogIn({ throttle, verifyPassword: verify });
    const running = verify(password, hash, turn);
    const call = new AbortController();
    const gone = logIn({
      username: "nobody",
      password,
      clientAddress: "192.0.2.1",
      requestId: "call-1",
      signal: call.signal,
    });
    await expect.poll(() => lane.waiting).toBe(1);
    expect(throttle.waitMs(["user nobody"])).toBe(0);
    call.abort(new Error("the caller disconnected"));
    await expect(gone).rejects.toThrow("the caller disconnected");
    expect(await running).toBe(true);
    expect([lane.depth, lane.callers]).toEqual([0, 0]);
    await failTimes(2, () =>
      logIn({ username: "nobody", password, clientAddress: "192.0.2.1", requestId: "call-1" }),
    );
  });
});

describe("a minute after the first failure", () => {
  /** Log-ins as ada at a time set by the test. */
  function startAt() {
    let nowMs = 0;
    const { from } = createLogIn({ throttle: createLoginThrottle(2, () => nowMs), verifyPassword });
    const setTime = (ms: number): void => {
      nowMs = ms;
    };
    return { from: (address: string, given: string) => from(address, "ada", given), setTime };
  }

  it("a name and an address may try again, but not earlier", async () => {
    const { from, setTime } = startAt();
    await failTimes(2, () => from("192.0.2.1", wrong));
    setTime(59_999);
    expect(await refusal(from("192.0.2.1", password))).toEqual(limited);
    setTime(60_000);
    expect(await from("192.0.2.1", password)).toMatchObject({ token: "of ada" });
  });

  it("a log-in that began earlier is not removed from the new count", async () => {
    let nowMs = 0;
    const throttle = createLoginThrottle(2, () => nowMs);
    const forget = throttle.count(["user ada"]);
    nowMs = 60_000;
    throttle.count(["user ada"]);
    throttle.count(["user ada"]);
    forget();
    expect(throttle.waitMs(["user ada"])).toBe(60_000);
  });

  it("as many failures are allowed again, but no more", async () => {
    const { from, setTime } = startAt();
    await failTimes(2, () => from("192.0.2.1", wrong));
    setTime(60_000);
    await failTimes(2, () => from("192.0.2.1", wrong));
    expect(await refusal(from("192.0.2.1", wrong))).toEqual(limited);
  });

  it("is when a refusal says to retry, even if little of the minute is left", async () => {
    const { from, setTime } = startAt();
    await failTimes(2, () => from("192.0.2.1", wrong));
    setTime(58_500);
    const error = await failureOf(from("192.0.2.1", password));
    expect(error.findDetails(RetryInfoSchema)[0]?.retryDelay).toMatchObject({ seconds: 1n, nanos: 5e8 });
    expect(error.metadata.get("retry-after")).toBe("2");
  });

  it("is not postponed by rejected attempts in between", async () => {
    const { from, setTime } = startAt();
    await failTimes(2, () => from("192.0.2.1", wrong));
    setTime(30_000);
    expect(await refusal(from("192.0.2.1", wrong))).toEqual(limited);
    setTime(60_000);
    expect(await from("192.0.2.1", password)).toMatchObject({ token: "of ada" });
  });
});

describe("a password", { timeout }, () => {
  const composed = "Ångström naïve café";
  const decomposed = composed.normalize("NFD");

  it.each([
    ["composed", composed, decomposed],
    ["decomposed", decomposed, composed],
  ])("that was set %s is accepted in the other form", async (_, set, given) => {
    expect(given).not.toBe(set);
    const server = await startShared();
    const { username } = await addUser(server, { hash: await hashPassword(set) });
    const address = freshAddress();
    expect(await logInFrom(server, address, { username, password: given })).toHaveProperty("token");
    expect(await logInFrom(server, address, { username, password: set })).toHaveProperty("token");
  });

  it("differs by case and by an additional space", async () => {
    const server = await startShared();
    const { username } = await addUser(server);
    for (const given of [password.toUpperCase(), `${password} `])
      expect(await refusal(logInFrom(server, freshAddress(), { username, password: given }))).toEqual(failed);
  });

  it("is not required while the server is open", async () => {
    const args = ["--auth", "open", "--max-failed-logins", "1"];
    const server = await startAccessServer({ atEnd: onTestFinished, args });
    const user = await addUser(server);
    for (const given of [wrong, "", wrong]) {
      const { token } = await server.connect().tokens.issueToken({ ...user, password: given });
      const { tokens } = server.connect(`Bearer ${token}`);
      expect(await tokens.getSecureData({})).toMatchObject({ subject: user.username });
    }
  });
});

describe("no password", { timeout }, () => {
  const secret = "Tr0ub4dor and three of his friends";

  it("appears in an answer, an error, a log line at level trace, an audit entry, or the data directory", async () => {
    const lines: string[] = [];
    const logger = pino({ level: "trace" }, { write: (line: string) => void lines.push(line) });
    const server = await startAccessServer({ atEnd: onTestFinished, logger });
    const { username } = await addUser(server, { hash: hashCheaply(secret) });
    const seen: string[] = [];
    const { tokens, pqc } = server.connect();
    const bodies = [
      { username, password: secret },
      { username: freshName(), password: secret },
      { username: "", password: secret },
      { username, password: secret.repeat(40) },
      { username, password: secret, passwort: secret },
      { username, password: [secret] },
      { username, password: { text: secret } },
      { username: [], password: secret },
    ];
    for (const body of bodies) {
      for (const path of ["/api/auth/token", "/api/grpc/auth/token", "/pqc.TokenService/IssueToken"]) {
        const answer = await server.rest(`POST ${path}`, body);
        seen.push(JSON.stringify([...answer.headers]), await answer.text());
      }
    }
    for (const order of [
      { username, password: secret },
      { username, password: `${secret}!` },
      { username: "", password: secret },
      { username, password: secret.repeat(40) },
    ])
      for (const call of [tokens.issueToken(order), pqc.issueToken(order)])
        seen.push(await describeOutcome(call));
    const admin = await server.makePerson("admin");
    await admin.kms.createKey({});
    const { auditLog } = await admin.kms.getAuditLog({});
    seen.push(JSON.stringify(auditLog, (_, value) => (typeof value === "bigint" ? String(value) : value)));

    expect(lines.join("")).toContain("LOGIN_FAILED");
    expect(auditLog).toHaveLength(1);
    for (const text of [...lines, ...seen, ...readFiles(server.dataDir)]) expect(text).not.toContain(secret);
  });

  it("leaks through an error or a log line if the body is malformed JSON", async () => {
    const lines: string[] = [];
    const logger = pino({ level: "trace" }, { write: (line: string) => void lines.push(line) });
    const server = await startAccessServer({ atEnd: onTestFinished, logger });
    const seen: string[] = [];
    const bodies = [
      `{"username":"ada","password":"${secret}"`,
      `{"username":"ada","password":${secret}}`,
      `{"username":"ada","password":"${secret}"}}`,
      `${secret}`,
      `"${secret}"`,
    ];
    for (const body of bodies)
      for (const path of ["/api/auth/token", "/pqc.TokenService/IssueToken"]) {
        const headers = { "content-type": "application/json" };
        const answer = await fetch(server.url + path, { method: "POST", headers, body });
        expect(answer.status).toBe(400);
        seen.push(await answer.text());
      }
    expect(await refusal(server.connect().tokens.issueToken({ username: "ada", password: secret }))).toEqual(
      failed,
    );
    expect(lines.join("")).toContain("LOGIN_FAILED");
    // Part of it would be as bad; parsers quote about ten characters.
    for (const text of [...lines, ...seen]) expect(text).not.toContain(secret.slice(0, 6));
  });
});

/** Logs in as ada and grace without a server. */
function createLogIn(parts: Pick<Parameters<typeof logInUsers>[0], "throttle" | "verifyPassword">) {
  const passwordHash = hashCheaply(password);
  const about = { role: "user", generation: "1", createdAt: new Date(0), passwordHash } as const;
  const users: Pick<UserStore, "find"> = {
    find: async (name) => (["ada", "grace"].includes(name) ? { name, userId: name, ...about } : undefined),
  };
  const issuer: Pick<Issuer, "issue"> = {
    issue: async (subject) => ({ token: `of ${subject}`, expiresAt: new Date(0) }),
  };
  const logIn = logInUsers({
    ...parts,
    records: noRecords,
    issuer: issuer as Issuer,
    users: users as UserStore,
    known: createKnownNetworks(),
    listNetworks,
  });
  const from = (clientAddress: string, username: string, given = password) =>
    logIn({ username, password: given, clientAddress, requestId: "call-1" });
  return { logIn, from };
}

/** Makes calls one after another, each of which must fail as a log-in does. */
async function failTimes(times: number, call: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < times; i += 1) expect(await refusal(call())).toEqual(failed);
}

function logInFrom(server: AccessServer, address: string, user: { username: string; password: string }) {
  return comeFrom(server, address).tokens.issueToken(user);
}

/** Everything that a caller receives. */
function describeOutcome(call: Promise<unknown>): Promise<string> {
  return call.then(
    (answer) => JSON.stringify(answer, (_, value) => (typeof value === "bigint" ? String(value) : value)),
    (thrown) => {
      const error = ConnectError.from(thrown);
      const details = JSON.stringify(error.details, (_, value) =>
        value instanceof Uint8Array ? Buffer.from(value).toString("latin1") : value,
      );
      return `${error.message} ${JSON.stringify([...error.metadata])} ${details}`;
    },
  );
}

function readFiles(directory: string): string[] {
  return readdirSync(directory).map((file) => readFileSync(join(directory, file)).toString("latin1"));
}
