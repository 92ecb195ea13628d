/** Calls, connections and bytes of one client, alongside other clients. */
import { once } from "node:events";
import type net from "node:net";
import { setImmediate } from "node:timers/promises";
import tls from "node:tls";
import type { DescMethod } from "@bufbuild/protobuf";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { Health } from "#gen/grpc/health/v1/health_pb.ts";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { ByteBudget } from "../../src/server/byte-budget.ts";
import { createCallsInProgress } from "../../src/server/calls-in-progress.ts";
import { Clients } from "../../src/server/clients.ts";
import { type ConnectionSharesDeps, createConnectionShares } from "../../src/server/connection-shares.ts";
import { createMetrics } from "../../src/server/metrics.ts";
import { splitEnvelopes } from "../../src/server/protocols/envelopes.ts";
import { createTokenBuckets } from "../../src/server/rate-limiter.ts";
import { createUnreadResponses } from "../../src/server/unread-responses.ts";
import { refusal } from "../support/refusal.ts";
import { connectTcp, envelope, readToEnd } from "./raw.ts";
import { serve } from "./serve.ts";
import { serveTls } from "./tls-clients.ts";

const method: DescMethod = PqcService.method.signData;

/** A server without calls. */
function createCalls(maxCalls: number, maxCallsPerUser = 0) {
  const clients = new Clients();
  const limits = { maxCalls, maxStreams: 10, maxCallsPerUser, maxStreamsPerUser: 0 };
  const calls = createCallsInProgress(limits, clients);
  /**
   * Starts calls from one client until one is refused.
   *
   * @returns how many were admitted, and a function that ends them
   */
  const begin = (name: string, most = Number.POSITIVE_INFINITY, called = method) => {
    const ends: (() => void)[] = [];
    for (; ends.length < most && !calls.isFullFor(called, () => name); ) {
      const held = calls.enter(called);
      const claim = clients.claim(name);
      calls.enterFor(called, claim);
      ends.push(() => {
        held.close();
        claim.close();
      });
    }
    return { count: ends.length, end: () => ends.forEach((end) => void end()) };
  };
  return { calls, clients, begin };
}

describe("a client's share", () => {
  it("is four fifths of all calls while it is alone, and leaves room for each client that comes later", () => {
    const { begin } = createCalls(1000);
    const counts = ["mallory", "mallory", "ada", "bob"].map((name) => begin(name).count);
    expect(counts).toEqual([800, 0, 160, 32]);
    expect(begin("carol").count).toBeGreaterThan(0);
  });

  it("is free again once its calls have ended", () => {
    const { begin } = createCalls(1000);
    begin("mallory").end();
    expect(begin("mallory").count).toBe(800);
  });

  it("is everything if the limit is small", () => {
    expect([1, 2, 3, 4].map((maxCalls) => createCalls(maxCalls).begin("ada").count)).toEqual([1, 2, 3, 4]);
  });

  it("is no more than the limit per user", () => {
    const { calls, clients, begin } = createCalls(1000, 250);
    begin("ada", 250);
    calls.enter(method);
    expect(() => calls.enterFor(method, clients.claim("ada"))).toThrow("already has 250 calls in progress");
    expect(calls.isCrowded()).toBe(false);
  });

  it("holds for health checks too, without a limit per user", () => {
    const { calls, clients, begin } = createCalls(1000, 250);
    const check = Health.method.check;
    expect(begin("mallory", Number.POSITIVE_INFINITY, check).count).toBe(800);
    calls.enter(check);
    expect(() => calls.enterFor(check, clients.claim("mallory"))).toThrow(calls.fullRefusal.message);
    expect(begin("ada", 250).count).toBe(250);
    expect(begin("proxy", Number.POSITIVE_INFINITY, check).count).toBeGreaterThan(0);
  });

  it("also refuses a call that the server has just counted", () => {
    const { calls, clients, begin } = createCalls(1000);
    begin("mallory");
    calls.enter(method);
    expect(() => calls.enterFor(method, clients.claim("mallory"))).toThrow(calls.fullRefusal.message);
    expect(calls.isCrowded()).toBe(true);
  });
});

describe("the resources of a client", () => {
  it("are the sum of its claims, and are released when these close, however often", () => {
    const clients = new Clients();
    const [first, second, other] = [clients.claim("ada"), clients.claim("ada"), clients.claim("bob")];
    first.add("bytes", 100);
    second.add("bytes", 20);
    other.add("bytes", 3);
    expect([first.sum("bytes"), second.sum("bytes"), other.sum("bytes")]).toEqual([120, 120, 3]);
    first.close();
    first.close();
    first.add("bytes", 7);
    expect([second.sum("bytes"), other.sum("bytes")]).toEqual([20, 3]);
  });

  it("stay within the limit across all claims", () => {
    const clients = new Clients();
    const [first, second] = [clients.claim("ada"), clients.claim("ada")];
    expect([first, second, first].map((claim) => claim.tryAcquire("calls", 2))).toEqual([true, true, false]);
    second.close();
    expect(first.tryAcquire("calls", 2)).toBe(true);
  });

  it("occupy no memory once the last claim is closed", () => {
    const clients = new Clients();
    const claims = ["ada", "bob", "ada"].map((name) => clients.claim(name));
    expect(clients.size).toBe(2);
    for (const claim of claims) claim.close();
    expect(clients.size).toBe(0);
    expect(clients.claim("ada").sum("calls")).toBe(0);
  });
});

const get = "GET /livez HTTP/1.1\r\nhost: x\r\n\r\n";
const connectFrom = (localAddress: string, port: number): net.Socket => connectTcp(port, false, localAddress);

/**
 * Waits for the first bytes of a connection.
 *
 * @returns undefined if the server closes it instead
 */
function open(socket: net.Socket): Promise<net.Socket | undefined> {
  socket.on("error", () => {});
  socket.write(get);
  return new Promise((resolve) => {
    socket.once("data", () => resolve(socket));
    socket.once("close", () => resolve(undefined));
  });
}

/** Opens a connection as soon as there is room for it. */
function openWhenFree(connect: () => net.Socket): Promise<net.Socket> {
  return vi.waitFor(
    async () => {
      const socket = await open(connect());
      if (socket === undefined) throw new Error("there is no room");
      return socket;
    },
    { timeout: 100_000 },
  );
}

describe("a server whose clients may have three connections each", () => {
  const limits = { maxConnections: 100, maxConnectionsPerClient: 3 };

  /** Opens three connections as room permits, and expects no room for a fourth. */
  async function fill(connect: () => net.Socket): Promise<net.Socket[]> {
    const held: net.Socket[] = [];
    while (held.length < 3) held.push(await openWhenFree(connect));
    expect(await open(connect())).toBeUndefined();
    return held;
  }

  it("closes the fourth connection of one client at once, and still serves another client", async () => {
    const metrics = createMetrics();
    const { port } = await serve({ services: [], metrics, limits });
    await fill(() => connectFrom("127.0.0.2", port));
    expect(await open(connectFrom("127.0.0.3", port))).toBeDefined();
    const { text } = await metrics.expose();
    const counts = ["total", "client", "rate"].map(
      (limit) => new RegExp(`^qsp_connections_refused_total{limit="${limit}"} (.*)$`, "m").exec(text)?.[1],
    );
    expect(counts).toEqual(["0", "1", "0"]);
  });

  it("accepts new ones once earlier ones have closed, in whatever way", async () => {
    const { port } = await serve({ services: [], limits });
    const ways = ["end", "destroy", "resetAndDestroy"] as const;
    for (const way of ways)
      for (const socket of await fill(() => connectFrom("127.0.0.2", port))) socket[way]();
    await fill(() => connectFrom("127.0.0.2", port));
  });

  it("does not count connections from 127.0.0.1 or a trusted proxy", async () => {
    const { port } = await serve({ services: [], limits, trustedProxies: ["127.0.0.8"] });
    for (const address of ["127.0.0.1", "127.0.0.8"])
      for (let held = 0; held < 8; held += 1) expect(await open(connectFrom(address, port))).toBeDefined();
  });

  it("counts connections during their TLS handshake, but not after they abort it", async () => {
    const { port, ca } = await serveTls({ limits });
    const connectTls = (): net.Socket =>
      tls.connect({ socket: connectFrom("127.0.0.2", port), ca, servername: "localhost" });
    const beginnings = [Buffer.from([0x16, 3, 1, 2, 0, 1]), Buffer.from("no TLS at all"), Buffer.alloc(0)];
    for (const beginning of beginnings) {
      const held = [1, 2, 3].map(() => connectFrom("127.0.0.2", port));
      await Promise.all(held.map((socket) => once(socket, "connect")));
      for (const socket of held) socket.write(beginning);
      for (const socket of held) socket.resetAndDestroy();
      for (const socket of await fill(connectTls)) socket.destroy();
    }
    for (let held = 0; held < 3; held += 1) await openWhenFree(connectTls);
    expect(await open(connectTls())).toBeUndefined();
  });

  it("counts connections that have sent nothing of their TLS handshake", async () => {
    const { port, ca } = await serveTls({ limits });
    const held = [1, 2, 3].map(() => connectFrom("127.0.0.2", port));
    await Promise.all(held.map((socket) => once(socket, "connect")));
    const fourth = connectFrom("127.0.0.2", port);
    expect(await readToEnd(fourth)).toBe("");
    for (const socket of held) socket.destroy();
    await fill(() => tls.connect({ socket: connectFrom("127.0.0.2", port), ca, servername: "localhost" }));
  });
});

describe("the shares of connections", () => {
  const isShared = (address: string): boolean => address === "192.0.2.8";

  function make(options: Partial<ConnectionSharesDeps>) {
    const lines: unknown[] = [];
    const refused: string[] = [];
    const shares = createConnectionShares({
      maxConnections: 100,
      maxConnectionsPerClient: 2,
      rate: { take: () => 0 },
      isShared: () => false,
      onRefused: (limit) => void refused.push(limit),
      logger: { warn: (line: unknown) => void lines.push(line) },
      ...options,
    });
    return { shares, lines, refused };
  }

  it("apply to a /64 network in IPv6", () => {
    const { shares } = make({});
    for (const host of [1, 2]) expect(shares.admit(`2001:db8:0:1::${host}`)).toBeDefined();
    expect(shares.admit("2001:db8:0:1:ffff::3")).toBeUndefined();
    expect(shares.admit("2001:db8:0:2::1")).toBeDefined();
  });

  it("are unlimited if set to 0", () => {
    const { shares } = make({ maxConnectionsPerClient: 0 });
    for (let held = 0; held < 100; held += 1) expect(shares.admit("192.0.2.1")).toBeDefined();
  });

  it("refuse a network that opens connections too fast, but not a proxy", () => {
    let nowMs = 0;
    const rate = createTokenBuckets(2, () => nowMs);
    const { shares, refused } = make({ rate, isShared });
    const isAdmitted = (address: string): boolean => {
      const leave = shares.admit(address);
      leave?.();
      return leave !== undefined;
    };
    const burst = [1, 2, 3, 4, 5].map((host) => isAdmitted(`2001:db8:0:1::${host}`));
    expect(burst).toEqual([true, true, true, true, false]);
    expect(refused).toEqual(["rate"]);
    expect(isAdmitted("2001:db8:0:2::1")).toBe(true);
    nowMs = 500;
    expect([isAdmitted("2001:db8:0:1::6"), isAdmitted("2001:db8:0:1::7")]).toEqual([true, false]);
    for (let times = 0; times < 20; times += 1) expect(isAdmitted("192.0.2.8")).toBe(true);
  });

  it("count ten unanswered requests as a connection, except from a proxy", () => {
    const rate = createTokenBuckets(1, () => 0);
    const { shares, refused } = make({ rate, isShared });
    expect(shares.admit("192.0.2.1")).toBeDefined();
    const mayStay = (address: string): boolean[] =>
      Array.from({ length: 11 }, () => shares.abandon(address, {}));
    expect(mayStay("192.0.2.1")).toEqual([...Array(10).fill(true), false]);
    expect(mayStay("192.0.2.8")).not.toContain(false);
    expect(shares.admit("192.0.2.1")).toBeUndefined();
    expect(refused).toEqual(["rate", "rate"]);
  });

  it("do not affect the limit on all connections", () => {
    const { shares, refused } = make({ maxConnections: 3, isShared: () => true });
    const leave = [1, 2, 3].map(() => shares.admit("192.0.2.1"));
    expect(shares.admit("192.0.2.2")).toBeUndefined();
    expect(refused).toEqual(["total"]);
    leave[0]?.();
    expect(shares.admit("192.0.2.2")).toBeDefined();
    expect(shares.admit("192.0.2.2")).toBeUndefined();
  });

  it("log one line a minute, with the number of refused connections", () => {
    let now = 0;
    const { shares, lines, refused } = make({ nowMs: () => now });
    for (let held = 0; held < 2; held += 1) shares.admit("192.0.2.1");
    for (let times = 0; times < 10; times += 1) shares.admit("192.0.2.1");
    now = 59_999;
    shares.admit("192.0.2.1");
    expect(lines).toEqual([{ limit: "client", client: "192.0.2.1", refused: 1 }]);
    now = 60_000;
    shares.admit("192.0.2.1");
    expect(lines.at(-1)).toEqual({ limit: "client", client: "192.0.2.1", refused: 11 });
    expect(refused).toHaveLength(12);
  });
});

const limited = { code: "ResourceExhausted", reason: "BUFFER_LIMITED" };
const reasonOf = (run: () => unknown) => refusal((async () => run())());
const createBudget = (limits = { maxBufferedBytes: 1e9, maxBufferedBytesPerClient: 1e9 }) => {
  const clients = new Clients();
  const budget = new ByteBudget(limits, clients);
  return { budget, clients, open: (client: string) => budget.open(clients.claim(client), client) };
};

describe("the byte budget", () => {
  const create = () => createBudget({ maxBufferedBytes: 10_000, maxBufferedBytesPerClient: 5000 });

  it("refuses what exceeds one client's share, without affecting other clients", async () => {
    const { open } = create();
    open("ada").charge(4000);
    expect(await reasonOf(() => open("ada").charge(2000))).toEqual(limited);
    open("bob").charge(2000);
  });

  it("refuses what exceeds the total for all clients", async () => {
    const { open } = create();
    for (const client of ["ada", "bob"]) open(client).charge(4700);
    expect(await reasonOf(() => open("eve").charge(1000))).toEqual(limited);
  });

  it("counts more than the bytes of a piece, so that many tiny pieces are not free", async () => {
    const meter = create().open("ada");
    const drip = () => {
      for (let i = 0; i < 100; i += 1) meter.charge(1);
    };
    expect(await reasonOf(drip)).toEqual(limited);
  });

  it("is fully available again when claims are closed, however often", () => {
    const { budget, clients } = create();
    const claim = clients.claim("ada");
    const meter = budget.open(claim, "ada");
    meter.charge(4000);
    claim.close();
    claim.close();
    meter.charge(4000);
    meter.refund(100);
    expect(budget.heldBytes).toBe(0);
  });
});

describe("the turns of large messages", () => {
  const large = 4_000_000;

  it("pass small messages at once", () => {
    const { open } = createBudget();
    for (let i = 0; i < 10; i += 1) expect(open("ada").takeTurn(1000)).toBeUndefined();
  });

  it("pass one large message per event-loop turn", async () => {
    const { open } = createBudget();
    let passed = 0;
    for (let i = 0; i < 10; i += 1) {
      const turn = open("ada").takeTurn(large);
      if (turn === undefined) passed += 1;
      else void turn.then(() => (passed += 1));
    }
    for (let turn = 1; turn <= 10; turn += 1) {
      expect(passed).toBe(turn);
      await setImmediate();
    }
  });

  it("alternate between clients", async () => {
    const { open } = createBudget();
    let passed = 0;
    for (let i = 0; i < 50; i += 1)
      void open("attacker")
        .takeTurn(large)
        ?.then(() => (passed += 1));
    await open("ada").takeTurn(large);
    expect(passed).toBeLessThanOrEqual(3);
  });
});

describe("the meter of a stream", () => {
  /**
   * Passes a stream through in pieces of one size.
   *
   * @returns the maximum number of bytes held, and the number at the end
   */
  async function measure(stream: Buffer, pieceBytes: number, maxBytes = 1000) {
    const { budget, open } = createBudget();
    const pieces = async function* () {
      for (let at = 0; at < stream.length; at += pieceBytes) yield stream.subarray(at, at + pieceBytes);
    };
    let most = 0;
    const passed: Uint8Array[] = [];
    const meter = open("ada");
    const body = { chunks: pieces(), headers: new Headers(), signal: new AbortController().signal, meter };
    const reading = (async () => {
      for await (const message of splitEnvelopes(body, maxBytes)) {
        passed.push(message);
        most = Math.max(most, budget.heldBytes);
      }
    })();
    const failure = await reading.then(
      () => undefined,
      () => refusal(reading),
    );
    return { most, last: budget.heldBytes, failure, passed: Buffer.concat(passed) };
  }
  const messages = Buffer.concat(Array.from({ length: 200 }, () => envelope(Buffer.alloc(300))));

  it.each([1, 4, 5, 7, 305, 306, 1000, 100_000])("holds at most a message, in pieces of %i", async (size) => {
    const { most, last, passed } = await measure(messages, size);
    expect(passed).toEqual(messages);
    // 305 bytes and the cost of their pieces.
    expect(most).toBeLessThanOrEqual(305 + 200 * Math.ceil(305 / Math.min(size, 305)) + 200);
    expect(last).toBe(0);
  });

  it.each([304, 2])("keeps counting a message that ends after %i bytes", async (bytes) => {
    const unfinished = messages.subarray(0, messages.length - 305 + bytes);
    const { last, failure } = await measure(unfinished, 50);
    expect(last).toBeGreaterThanOrEqual(bytes);
    expect(failure).toMatchObject({ reason: "BODY_INCOMPLETE" });
  });

  it.each([5, 100_000])("refuses a prefix that announces too much, in pieces of %i", async (size) => {
    const failure = { code: "ResourceExhausted", reason: "BODY_TOO_LARGE" };
    // The second never arrives: 4 GiB, the largest number.
    for (const large of [envelope(Buffer.alloc(1001)), Buffer.of(0, 255, 255, 255, 255)]) {
      const stream = Buffer.concat([messages, large]);
      expect(await measure(stream, size)).toMatchObject({ failure, passed: messages });
    }
  });
});

it("unread responses are dropped once they make no progress within their time limit", () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  let nowMs = 0;
  const dropped: string[] = [];
  const { clients } = createBudget();
  const now = () => nowMs;
  const unread = createUnreadResponses(5000, () => {}, clients, now);
  const pending = { stalled: 100, steady: 100, slow: 100_000, read: 0 };
  for (const name of ["stalled", "steady", "slow", "read"] as const)
    unread.watch({
      client: () => "ada",
      pendingBytes: () => pending[name],
      writtenBytes: () => (name === "steady" ? nowMs : 0),
      drop: () => void dropped.push(name),
    });
  for (let second = 1; second <= 8; second += 1) {
    nowMs = second * 1000;
    pending.slow -= 100;
    vi.advanceTimersByTime(1000);
  }
  expect(dropped).toEqual(["stalled"]);
  expect(clients.claim("ada").sum("unread")).toBe(100 + pending.slow);
  expect(clients.claim("bob").sum("unread")).toBe(0);
});
