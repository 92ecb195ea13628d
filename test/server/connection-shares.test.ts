/** Connections of one client network, alongside other clients. */
import { once } from "node:events";
import type net from "node:net";
import tls from "node:tls";
import { describe, expect, it, vi } from "vitest";
import { type ConnectionSharesDeps, createConnectionShares } from "../../src/server/connection-shares.ts";
import { createMetrics } from "../../src/server/metrics.ts";
import { createTokenBuckets } from "../../src/server/rate-limiter.ts";
import { connectTcp, readToEnd } from "./raw.ts";
import { serve } from "./serve.ts";
import { serveTls } from "./tls-clients.ts";

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
