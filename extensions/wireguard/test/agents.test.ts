/** Both agents with an interface in memory, a server of a few lines, and a clock that runs 1000 times as fast. */
import { queryObjects } from "node:v8";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import pino from "pino";
import { describe, expect, it, onTestFinished } from "vitest";
import { ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { type WatchPeersResponse, WatchPeersResponseSchema } from "#gen/wireguard/wireguard_service_pb.ts";
import { createOutgoing, type Outgoing } from "../../../test/support/streams.ts";
import type { AgentDeps } from "../agent.ts";
import { runGatewayAgent } from "../gateway-agent.ts";
import type { WireguardInterface } from "../interface.ts";
import { InterfaceError, type InterfacePeer, type PeerChange } from "../interface-driver.ts";
import { keyTiming } from "../key-state.ts";
import { runPeerAgent } from "../peer-agent.ts";

const keyOf = (letter: string) => `${letter.repeat(43)}=`;
const agreedKey = (number: number) => new Uint8Array(32).fill(number);
const [empty, gatewayKey] = [new Uint8Array(32), keyOf("G")];

/** An interface in memory, which records all pre-shared keys that a peer ever had. */
class FakeInterface implements WireguardInterface {
  readonly name = "wg0";
  readonly peers = new Map<string, InterfacePeer>();
  readonly changes: PeerChange[] = [];
  isDown = false;

  constructor(...peers: readonly Partial<InterfacePeer>[]) {
    for (const peer of peers) this.put({ publicKey: gatewayKey, ...peer });
  }

  put(peer: Partial<InterfacePeer> & { readonly publicKey: string }): void {
    const nothing = { presharedKey: empty, endpoint: undefined, handshakeMs: 0, allowedIps: [] };
    this.peers.set(peer.publicKey, { ...nothing, ...this.peers.get(peer.publicKey), ...peer });
  }

  /** The first byte of a peer's key. Unlike an `agreedKey`, a random key has different bytes. */
  keyOf(publicKey: string): number | "random" | undefined {
    const key = this.peers.get(publicKey)?.presharedKey;
    return key?.every((byte) => byte === key[0]) ? key[0] : key && "random";
  }

  async readPublicKey() {
    return keyOf("O");
  }

  async readPeers() {
    if (this.isDown) throw new InterfaceError("the interface is down");
    return [...this.peers.values()].map((peer) => ({
      ...peer,
      presharedKey: Uint8Array.from(peer.presharedKey),
    }));
  }

  async change(changes: readonly PeerChange[]) {
    if (this.isDown) throw new InterfaceError("the interface is down");
    for (const { kind, publicKey, presharedKey, endpoint, allowedIps } of changes) {
      this.changes.push({ kind, publicKey });
      if (kind !== "set") this.peers.delete(publicKey);
      if (kind === "remove") continue;
      this.put({
        publicKey,
        ...(presharedKey && { presharedKey: Uint8Array.from(presharedKey) }),
        ...(endpoint && { endpoint }),
        ...(allowedIps && { allowedIps }),
      });
    }
  }
}

/** Runs an agent until the test ends. */
function run(wireguard: FakeInterface, start: (deps: AgentDeps, stop: AbortSignal) => Promise<void>) {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ base: null }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const timing = { ...keyTiming, tickMs: 1, retryMs: 2, restoreAfterMs: 60_000, renewAfterMs: 60_000 };
  const deps: AgentDeps = { wireguard, timing, log, now: Date.now, url: "http://127.0.0.1:8080" };
  const controller = new AbortController();
  const end = start(deps, controller.signal);
  end.catch(() => {});
  const stop = (): Promise<void> => {
    controller.abort();
    return end;
  };
  onTestFinished(() => stop().catch(() => {}));
  const kinds = () => wireguard.changes.map(({ kind }) => kind);
  return { wireguard, end, stop, kinds, lines, messages: () => lines.map(({ msg }) => msg) };
}

/** Waits until something has a value. */
const until = (read: () => unknown) => expect.poll(() => read(), { interval: 1 });

describe("a peer's agent", () => {
  const gateway = { publicKey: gatewayKey, endpoint: "192.0.2.1:51820", allowedIps: ["10.8.0.1/32"] };

  function start(
    agree: () => Promise<Uint8Array> = async () => agreedKey(7),
    ...peers: Partial<InterfacePeer>[]
  ) {
    const wireguard = new FakeInterface(...peers);
    const running = run(wireguard, (deps, stop) => runPeerAgent({ ...deps, agree }, gateway, stop));
    const key = () => wireguard.keyOf(gatewayKey);
    return { ...running, key };
  }

  it("adds the gateway, with a random key, before it agrees on another", async () => {
    const { promise, resolve } = Promise.withResolvers<Uint8Array>();
    const { wireguard, messages, key, kinds } = start(() => promise);
    await until(key).toBe("random");
    const { endpoint, allowedIps } = gateway;
    expect(wireguard.peers.get(gatewayKey)).toMatchObject({ endpoint, allowedIps });
    resolve(agreedKey(7));
    await until(key).toBe(7);
    expect(kinds()).toEqual(["set", "renew"]);
    wireguard.put({ publicKey: gatewayKey, handshakeMs: Date.now() + 1000 });
    await until(messages).toContain("a handshake used the new pre-shared key");
  });

  it("keeps the addresses that its user gave the gateway, and the place where WireGuard heard it", async () => {
    const user = { allowedIps: ["10.8.0.0/16", "192.168.0.0/24"], endpoint: "198.51.100.1:1" };
    const { wireguard, key } = start(undefined, user);
    await until(key).toBe(7);
    expect(wireguard.peers.get(gatewayKey)).toMatchObject(user);
  });

  it("does not disturb a live session at its start", async () => {
    const session = { presharedKey: agreedKey(1), handshakeMs: Date.now() };
    const { wireguard, key } = start(undefined, session);
    await until(key).toBe("random");
    expect(wireguard.changes).toEqual([{ kind: "set", publicKey: gatewayKey }]);
  });

  it("tries again after failures, and logs each once", async () => {
    let calls = 0;
    const { lines, key } = start(async () => {
      calls += 1;
      if (calls < 4) throw new ConnectError("no route", Code.Unavailable);
      return agreedKey(7);
    });
    await until(key).toBe(7);
    const reason = "http://127.0.0.1:8080 cannot be reached: no route; name a running server with --url";
    expect(lines.map(({ msg, reason }) => [msg, reason])).toEqual([
      ["the agreement failed; trying again", reason],
      ["agreed on a pre-shared key and set it", undefined],
      ["the agreement works again", undefined],
    ]);
  });

  it("sets its key again when another program changes it, or makes the interface anew", async () => {
    const { wireguard, key } = start();
    await until(key).toBe(7);
    wireguard.put({ publicKey: gatewayKey, presharedKey: empty });
    await until(key).toBe(7);
    wireguard.isDown = true;
    wireguard.peers.clear();
    wireguard.isDown = false;
    await until(key).toBe(7);
  });

  it("leaves a random key when it stops, and has no key in its log", async () => {
    const { stop, messages, lines, key } = start(async () => agreedKey(0x5e));
    await until(messages).toContain("agreed on a pre-shared key and set it");
    expect(key()).toBe(0x5e);
    await stop();
    expect(key()).toBe("random");
    expect(JSON.stringify(lines)).not.toMatch(/5e5e|Xl5e|94,94/);
  });
});

describe("the gateway's agent", () => {
  type Event = NonNullable<WatchPeersResponse["event"]>;

  /** A server whose streams the test feeds. */
  function start(
    isAwaited: () => boolean | Promise<boolean> = () => true,
    ...peers: Partial<InterfacePeer>[]
  ) {
    const wireguard = new FakeInterface(...peers);
    const reports: unknown[] = [];
    const feeds: Outgoing<Event | ConnectError>[] = [];
    async function* watch(): AsyncGenerator<WatchPeersResponse> {
      const events = createOutgoing<Event | ConnectError>();
      feeds.push(events);
      for await (const event of events) {
        if (event instanceof ConnectError) throw event;
        yield create(WatchPeersResponseSchema, { event } as never);
      }
    }
    const report = async (one: unknown) => {
      reports.push(one);
      return isAwaited();
    };
    const agent = run(wireguard, (deps, stop) => runGatewayAgent({ ...deps, watch, report }, stop));
    const feed = async (...events: (Event | ConnectError)[]): Promise<void> => {
      await until(() => feeds.length).toBeGreaterThan(0);
      for (const event of events) feeds.at(-1)?.send(event);
    };
    const key = (letter = "a") => wireguard.keyOf(idOf(letter));
    return { ...agent, reports, feeds, feed, key };
  }

  /** With peer a, and these events after the list of peers. */
  async function startListed(events: readonly Event[], isAwaited?: () => boolean | Promise<boolean>) {
    const agent = start(isAwaited);
    await agent.feed(peer("a", "10.8.0.2"), listed, ...events);
    return agent;
  }

  const idOf = (letter: string) => `${letter.repeat(42)}A=`;
  const bytesOf = (letter: string) => Uint8Array.fromBase64(idOf(letter));
  const peer = (letter: string, assignedIp: string, tunnelId = `tunnel-${letter}`): Event =>
    ({ case: "peer", value: { tunnelId, wireguardPublicKey: bytesOf(letter), assignedIp } }) as Event;
  const listed = { case: "listed", value: {} } as Event;
  const removed = { case: "removed", value: { tunnelId: "tunnel-a" } } as Event;
  const newKey = (letter: string, presharedKey: Uint8Array, tunnel = letter): Event => {
    const peer = { tunnelId: `tunnel-${tunnel}`, wireguardPublicKey: bytesOf(letter) };
    const value = { ...peer, epoch: 5, presharedKey };
    return { case: "key", value } as Event;
  };
  /** A new one each time: the agent wipes its key. */
  const seven = () => newKey("a", agreedKey(7));

  it("gives the peers of an earlier run random keys at once, and removes those that the server does not list", async () => {
    const earlier = [
      "10.8.0.2/32",
      "10.8.0.3/32",
      "10.8.0.0/24",
      "192.168.0.4/32",
      "10.8.0.6/32 10.9.0.0/16",
    ];
    const peers = earlier.map((addresses, i) => {
      const allowedIps = addresses.split(" ");
      return { publicKey: idOf("abcde".charAt(i)), presharedKey: agreedKey(i + 1), allowedIps };
    });
    const { wireguard, feed, key } = start(undefined, ...peers);
    await until(() => [..."abcde"].map(key)).toEqual(["random", "random", 3, 4, 5]);
    await feed(peer("a", "10.8.0.2"), peer("f", "10.8.0.7"), listed);
    await until(() => [...wireguard.peers.keys()]).toEqual([..."acdef"].map(idOf));
    expect(wireguard.peers.get(idOf("f"))?.allowedIps).toEqual(["10.8.0.7/32"]);
    expect(key("f")).toBe("random");
  });

  it("sets a key and reports it, and leaves random keys when it stops", async () => {
    const { reports, kinds, key, stop } = await startListed([seven()]);
    await until(() => reports).toEqual([{ tunnelId: "tunnel-a", epoch: 5, applied: true }]);
    expect([key(), kinds()]).toEqual([7, ["set", "set"]]);
    await stop();
    expect(key()).toBe("random");
  });

  it.each([
    ["an empty key", newKey("a", empty)],
    ["a short key", newKey("a", new Uint8Array(31).fill(7))],
    ["a key for an unknown peer", newKey("z", agreedKey(7))],
    ["a key for the former WireGuard key of a tunnel", newKey("b", agreedKey(7), "a")],
  ])("does not set %s, and reports that", async (_name, event) => {
    const { reports, key } = await startListed([event]);
    await until(() => reports).toMatchObject([{ applied: false }]);
    expect(key()).toBe("random");
  });

  it("leaves a peer alone that the operator configured, whoever registers and leaves with its key", async () => {
    const configured = { publicKey: idOf("a"), presharedKey: agreedKey(4), allowedIps: ["10.9.0.5/32"] };
    const { wireguard, feed, reports, messages, key } = start(undefined, configured);
    await feed(peer("a", "10.8.0.2"), peer("b", "10.8.0.3"), listed, seven());
    await until(() => reports).toMatchObject([{ applied: false }]);
    await feed(removed, newKey("b", agreedKey(8)));
    await until(() => key("b")).toBe(8);
    expect(wireguard.peers.get(idOf("a"))).toMatchObject(configured);
    expect(messages().filter((message) => String(message).includes("leaves it alone"))).toHaveLength(1);
  });

  it("reports that it could not set a key, and has it nowhere", async () => {
    const { wireguard, feed, reports, key } = await startListed([]);
    await until(key).toBe("random");
    wireguard.isDown = true;
    await feed(seven());
    await until(() => reports).toMatchObject([{ applied: false }]);
    wireguard.isDown = false;
    await until(key).toBe("random");
  });

  it("puts the former key back if no peer waits for the report", async () => {
    const { reports, key } = await startListed([seven()], () => false);
    await until(() => reports).toMatchObject([{ applied: true }]);
    await until(key).toBe("random");
  });

  it("keeps a newer key when an older one's report is answered late", async () => {
    const [late, other] = [Promise.withResolvers<boolean>(), Promise.withResolvers<boolean>()];
    const answers = [late.promise, other.promise];
    const isAwaited = () => answers.shift() ?? true;
    const newer = newKey("a", agreedKey(8));
    const { wireguard, feed, reports, key } = await startListed([seven(), newer], isAwaited);
    await until(() => reports.length).toBe(2);
    late.resolve(false);
    await feed(peer("b", "10.8.0.3"));
    await until(() => wireguard.peers.size).toBe(2);
    expect(key()).toBe(8);
  });

  it("does not put a peer back that left while the server answered a report", async () => {
    const late = Promise.withResolvers<boolean>();
    const { wireguard, feed, reports, kinds } = await startListed([seven()], () => late.promise);
    await until(() => reports.length).toBe(1);
    await feed(removed);
    await until(() => wireguard.peers.size).toBe(0);
    late.resolve(false);
    await feed(peer("b", "10.8.0.3"));
    await until(() => wireguard.peers.size).toBe(1);
    expect(kinds()).toEqual(["set", "set", "remove", "set"]);
  });

  it("removes a peer whose tunnel ended, or got another key", async () => {
    const { wireguard, feed } = await startListed([peer("b", "10.8.0.3")]);
    await until(() => wireguard.peers.size).toBe(2);
    await feed(removed, peer("c", "10.8.0.3", "tunnel-b"));
    await until(() => [...wireguard.peers.keys()]).toEqual([idOf("c")]);
  });

  it("opens the stream again when it ends, and keeps the keys of its peers", async () => {
    const { feed, feeds, messages, key } = await startListed([seven()]);
    await until(key).toBe(7);
    await feed(new ConnectError("the server stops", Code.Unavailable));
    await until(() => feeds.length).toBe(2);
    await feed(peer("a", "10.8.0.2"), listed);
    await until(messages).toContain("the stream of peers works again");
    expect(key()).toBe(7);
  });

  it.each([
    ["an address of another network", peer("a", "192.168.0.1")],
    ["an address with a line break", peer("a", "10.8.0.2/32\nreplace_peers=true")],
  ])("ends a stream with %s", async (_name, event) => {
    const { wireguard, feed, feeds } = start();
    await feed(event, listed);
    await until(() => feeds.length).toBe(2);
    expect(wireguard.changes).toEqual([]);
  });

  it("ends a stream with more tunnels than the network has addresses", async () => {
    const { feed, feeds } = start();
    await feed(...Array.from({ length: 65_537 }, (_, i) => peer("a", "10.8.0.2", `tunnel-${i}`)));
    await until(() => feeds.length).toBe(2);
  });

  it("ends when another agent takes over", async () => {
    const replaced = new ConnectError("another agent has connected", Code.Aborted, undefined, [
      { desc: ErrorInfoSchema, value: { reason: "GATEWAY_REPLACED", domain: "quantum-safe-playground" } },
    ]);
    const { feed, end, key } = await startListed([seven()]);
    await feed(replaced);
    await expect(end).rejects.toMatchObject({ exitCode: 3, message: /GATEWAY_REPLACED/ });
    expect(key()).toBe("random");
  });

  it("keeps nothing for the events of a stream that lasts", async () => {
    const { wireguard, feed } = await startListed([]);
    await until(() => wireguard.peers.size).toBe(1);
    const countFunctions = () => queryObjects(Function, { format: "count" });
    const before = countFunctions();
    await feed(...Array.from({ length: 2000 }, () => peer("a", "10.8.0.2")), peer("b", "10.8.0.3"));
    await until(() => wireguard.peers.size).toBe(2);
    expect(countFunctions() - before).toBeLessThan(1000);
  });
});
