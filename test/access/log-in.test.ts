/** Log-in with `--auth token`: who gets a token, how often one may fail, and that passwords never leak. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
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
import { describeRefusal, failureOf, outcomesOf, type Refusal, refusal } from "../support/refusal.ts";
import { type AccessServer, startAccessServer, timeout } from "./access-server.ts";

/** Parameters of each scrypt computation in this process. */
const computed = vi.hoisted((): unknown[] => []);

vi.mock("node:crypto", async (load) => {
  const { cheapen } = await import("../support/cheap-scrypt.ts");
  const cheap = cheapen(await load());
  const scrypt = (given: string, salt: Uint8Array, bytes: number, ...rest: [object, () => void]) => {
    computed.push({ ...rest[0], bytes, saltBytes: salt.length });
    return cheap.scrypt(given, salt, bytes, ...rest);
  };
  return { ...cheap, scrypt };
});

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
function comeFrom(server: AccessServer) {
  names += 1;
  return server.connect(undefined, { "x-forwarded-for": `10.0.${names >> 8}.${names & 255}` });
}

describe("a log-in", { timeout }, () => {
  it("gives a user who knows the password a token, which other calls accept", async () => {
    const server = await startShared();
    const user = await addUser(server);
    for (const service of ["pqc", "tokens"] as const) {
      const { token } = await comeFrom(server)[service].issueToken(user);
      const { tokens } = server.connect(`Bearer ${token}`);
      expect(await tokens.getSecureData({})).toMatchObject({ subject: user.username });
    }
  });

  it("rejects a wrong password, an empty password and an unknown name with the same message", async () => {
    const server = await startShared();
    const { username } = await addUser(server);
    // Another user's password is as wrong as any.
    await addUser(server, { hash: hashCheaply(wrong) });
    const attempts = [
      { username, password: wrong },
      { username, password: "" },
      { username: freshName(), password: wrong },
      { username: freshName(), password: "" },
    ];
    const errors = [];
    for (const attempt of attempts) errors.push(await failureOf(logIn(server, attempt)));
    for (const error of errors) expect(describeRefusal(error)).toEqual(failed);
    expect(new Set(errors.map(({ rawMessage }) => rawMessage))).toHaveLength(1);
    expect(new Set(errors.map(({ details }) => JSON.stringify(details)))).toHaveLength(1);
  });
});

it("a failed log-in costs the same for a wrong password and an unknown user", { timeout }, async () => {
  const server = await startShared();
  const { username } = await addUser(server, { hash: await hashPassword(password) });
  const costOf = async (name: string): Promise<unknown[]> => {
    computed.length = 0;
    expect(await refusal(logIn(server, { username: name, password: wrong }))).toEqual(failed);
    return [...computed];
  };
  const known = await costOf(username);
  expect(known).toHaveLength(1);
  expect(await costOf(freshName())).toEqual(known);
});

describe("the limit on failed log-ins", { timeout }, () => {
  it("counts both calls together, and names wherever they come from", async () => {
    const server = await startShared();
    const user = await addUser(server);
    for (const service of ["pqc", "tokens", "pqc"] as const) {
      const attempt = comeFrom(server)[service].issueToken({ ...user, password: wrong });
      expect(await refusal(attempt)).toEqual(failed);
    }
    for (const service of ["pqc", "tokens"] as const)
      expect(await refusal(comeFrom(server)[service].issueToken(user))).toEqual(limited);
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

type LogInFrom = ReturnType<typeof createLogIn>["from"];

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

  it("applies to a name, known or not, wherever its failures come from, and to no other name", async () => {
    const { from } = start();
    for (const name of ["ada", "nobody"]) {
      for (let i = 1; i <= 3; i += 1)
        expect(await refusal(from(`198.51.100.${name.length * i}`, name, wrong))).toEqual(failed);
      expect(await refusal(from("192.0.2.1", name))).toEqual(limited);
    }
    expect(await from("192.0.2.1", "grace")).toHaveProperty("token");
  });

  it("does not count successful log-ins", async () => {
    const { from } = start();
    await failTimes(2, () => from("192.0.2.1", freshName(), wrong));
    for (let i = 0; i < 5; i += 1) expect(await from("192.0.2.1", "ada")).toHaveProperty("token");
    await failTimes(1, () => from("192.0.2.1", freshName(), wrong));
    expect(await refusal(from("192.0.2.1", "grace"))).toEqual(limited);
  });

  it.each([
    ["/64", (i: number) => `2001:db8:0:1200::${i}`, "2001:db8:0:1200::ffff"],
    ["/56", (i: number) => `2001:db8:0:120${i}::1`, "2001:db8:0:12ff::1"],
    ["/48", (i: number) => `2001:db8:0:${i}00::1`, "2001:db8:0:ffff::1"],
  ])("applies to the whole %s of an IPv6 address", async (_, addressOf, inside) => {
    const { from } = start();
    for (let i = 1; i <= 3; i += 1)
      expect(await refusal(from(addressOf(i), freshName(), wrong))).toEqual(failed);
    expect(await refusal(from(inside, "ada"))).toEqual(limited);
    expect(await from("2001:db8:1::1", "ada")).toHaveProperty("token");
  });

  it.each<[string, (from: LogInFrom) => Promise<void>, string, string]>([
    [
      "a name does not lock its user out where they have logged in before",
      async (from) => {
        for (let i = 1; i <= 3; i += 1) await refusal(from(`198.51.100.${i}`, "ada", wrong));
      },
      "198.51.100.4",
      "ada",
    ],
    [
      "a network does not lock out users who have logged in there before",
      (from) => failTimes(3, () => from("192.0.2.1", freshName(), wrong)),
      "192.0.2.1",
      "grace",
    ],
  ])("for %s", async (_what, fail, address, name) => {
    const { from } = start();
    await from("192.0.2.1", "ada");
    await fail(from);
    expect(await refusal(from(address, name))).toEqual(limited);
    expect(await from("192.0.2.1", "ada")).toHaveProperty("token");
    // It applies to a known user in a known network, too.
    await failTimes(3, () => from("192.0.2.1", "ada", wrong));
    expect(await refusal(from("192.0.2.1", "ada"))).toEqual(limited);
  });

  it("does not treat a network as known after a failed log-in", async () => {
    const { from } = start();
    await failTimes(1, () => from("192.0.2.1", "ada", wrong));
    await failTimes(2, () => from("198.51.100.1", "ada", wrong));
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

it("a waiting password is not checked after its caller has left, and does not count as a failure", async () => {
  const { lane, verify } = createPasswordLane({ maxChecks: 1, maxWaitMs: 60_000 });
  const hash = hashCheaply(password);
  const turn = { network: "m", knownName: undefined };
  const throttle = createLoginThrottle(2);
  const { logInAs } = createLogIn({ throttle, verifyPassword: verify });
  const running = verify(password, hash, turn);
  const call = new AbortController();
  const attempt = { username: "nobody", password, clientAddress: "192.0.2.1", requestId: "call-1" };
  const gone = logInAs({ ...attempt, signal: call.signal });
  await expect.poll(() => lane.waiting).toBe(1);
  expect(throttle.waitMs(["user nobody"])).toBe(0);
  call.abort(new Error("the caller disconnected"));
  await expect(gone).rejects.toThrow("the caller disconnected");
  expect(await running).toBe(true);
  expect([lane.depth, lane.callers]).toEqual([0, 0]);
  await failTimes(2, () => logInAs(attempt));
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
    // This refused attempt does not postpone the end.
    setTime(60_000);
    expect(await from("192.0.2.1", password)).toMatchObject({ token: "of ada" });
    await failTimes(2, () => from("192.0.2.1", wrong));
    expect(await refusal(from("192.0.2.1", wrong))).toEqual(limited);
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

  it("is when a refusal says to retry, even if little of the minute is left", async () => {
    const { from, setTime } = startAt();
    await failTimes(2, () => from("192.0.2.1", wrong));
    setTime(58_500);
    const error = await failureOf(from("192.0.2.1", password));
    expect(error.findDetails(RetryInfoSchema)[0]?.retryDelay).toMatchObject({ seconds: 1n, nanos: 5e8 });
    expect(error.metadata.get("retry-after")).toBe("2");
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
    const hash = await hashPassword(set);
    expect(await Promise.all([given, set].map((text) => verifyPassword(text, hash)))).toEqual([true, true]);
  });

  it("differs by case and by an additional space", async () => {
    for (const given of [password.toUpperCase(), `${password} `])
      expect(await verifyPassword(given, hashCheaply(password))).toBe(false);
  });
});

it("no password appears in an answer, a log line at level trace, or the data directory", {
  timeout,
}, async () => {
  const secret = "Tr0ub4dor and three of his friends";
  const lines: string[] = [];
  const logger = pino({ level: "trace" }, { write: (line: string) => void lines.push(line) });
  const server = await startAccessServer({ atEnd: onTestFinished, logger });
  const { username } = await addUser(server, { hash: hashCheaply(secret) });
  const wellFormed = [
    { username, password: secret },
    { username, password: `${secret}!` },
    { username: freshName(), password: secret },
    { username, password: secret.repeat(40) },
    { username, password: secret, passwort: secret },
    { username, password: [secret] },
    { username: [], password: secret },
  ].map((body) => JSON.stringify(body));
  const malformed = [
    `{"username":"ada","password":"${secret}"`,
    `{"password":${secret}}`,
    secret,
    `"${secret}"`,
  ];
  const headers = { "content-type": "application/json" };
  for (const body of [...wellFormed, ...malformed])
    for (const path of ["/api/auth/token", "/api/grpc/auth/token", "/pqc.TokenService/IssueToken"]) {
      const answer = await fetch(server.url + path, { method: "POST", headers, body });
      lines.push(JSON.stringify([...answer.headers]), await answer.text());
    }
  expect(lines.join("")).toContain("LOGIN_FAILED");
  // Part of it would be as bad; parsers quote about ten characters.
  for (const text of lines) expect(text).not.toContain(secret.slice(0, 6));
  for (const file of readdirSync(server.dataDir))
    expect(readFileSync(join(server.dataDir, file)).includes(secret)).toBe(false);
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
  const logInAs = logInUsers({
    ...parts,
    records: noRecords,
    issuer: issuer as Issuer,
    users: users as UserStore,
    known: createKnownNetworks(),
    listNetworks,
  });
  const from = (clientAddress: string, username: string, given = password) =>
    logInAs({ username, password: given, clientAddress, requestId: "call-1" });
  return { logInAs, from };
}

/** Makes calls one after another, each of which must fail as a log-in does. */
async function failTimes(times: number, call: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < times; i += 1) expect(await refusal(call())).toEqual(failed);
}

function logIn(server: AccessServer, user: { username: string; password: string }) {
  return comeFrom(server).tokens.issueToken(user);
}
