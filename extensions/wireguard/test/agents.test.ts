/** Both agents with an interface in memory, a server of a few lines, and a clock that runs 1000 times as fast. */
import { queryObjects } from "node:v8";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import pino from "pino";
import { describe, expect, it, onTestFinished } from "vitest";
import { ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { type WatchPeersResponse, WatchPeersResponseSchema } from "#gen/wireguard/wireguard_service_pb.ts";
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

  shakeHands(publicKey: string): void {
    this.put({ publicKey, handshakeMs: Date.now() + 1000 });
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
      if (kind !== "remove")
        this.put({
          publicKey,
          ...(presharedKey && { presharedKey: Uint8Array.from(presharedKey) }),
          ...(endpoint && { endpoint }),
          ...(allowedIps && { allowedIps }),
        });
    }
  }
}

function makeDeps(wireguard: WireguardInterface) {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ base: null }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const timing = { ...keyTiming, tickMs: 1, retryMs: 2, restoreAfterMs: 60_000, renewAfterMs: 60_000 };
  const deps: AgentDeps = { wireguard, timing, log, now: Date.now, url: "http://127.0.0.1:8080" };
  return { deps, messages: () => lines.map(({ msg }) => msg), lines };
}

/** Runs an agent until the test ends. */
function runUntilStopped(start: (stop: AbortSignal) => Promise<void>) {
  const controller = new AbortController();
  const end = start(controller.signal);
  end.catch(() => {});
  const stop = (): Promise<void> => {
    controller.abort();
    return end;
  };
  onTestFinished(() => stop().catch(() => {}));
  return { end, stop };
}

const poll = { interval: 1 };

describe("a peer's agent", () => {
  const gateway = { publicKey: gatewayKey, endpoint: "192.0.2.1:51820", allowedIps: ["10.8.0.1/32"] };

  function start(wireguard: FakeInterface, agree: () => Promise<Uint8Array>) {
    const made = makeDeps(wireguard);
    return { ...made, ...runUntilStopped((stop) => runPeerAgent({ ...made.deps, agree }, gateway, stop)) };
  }

  it("adds the gateway, with a random key, before it agrees on another", async () => {
    const wireguard = new FakeInterface();
    const { promise, resolve } = Promise.withResolvers<Uint8Array>();
    const { messages } = start(wireguard, () => promise);
    await expect.poll(() => wireguard.keyOf(gatewayKey), poll).toBe("random");
    expect(wireguard.peers.get(gatewayKey)).toMatchObject({
      endpoint: "192.0.2.1:51820",
      allowedIps: ["10.8.0.1/32"],
    });
    resolve(agreedKey(7));
    await expect.poll(() => wireguard.keyOf(gatewayKey), poll).toBe(7);
    expect(wireguard.changes.map(({ kind }) => kind)).toEqual(["set", "renew"]);
    wireguard.shakeHands(gatewayKey);
    await expect.poll(messages, poll).toContain("a handshake used the new pre-shared key");
  });

  it("keeps the addresses that its user gave the gateway, and the place where WireGuard heard it", async () => {
    const user = { allowedIps: ["10.8.0.0/16", "192.168.0.0/24"], endpoint: "198.51.100.1:1" };
    const wireguard = new FakeInterface(user);
    start(wireguard, async () => agreedKey(7));
    await expect.poll(() => wireguard.keyOf(gatewayKey), poll).toBe(7);
    expect(wireguard.peers.get(gatewayKey)).toMatchObject(user);
  });

  it("does not disturb a live session at its start", async () => {
    const wireguard = new FakeInterface({ presharedKey: agreedKey(1), handshakeMs: Date.now() });
    start(wireguard, async () => agreedKey(7));
    await expect.poll(() => wireguard.keyOf(gatewayKey), poll).toBe("random");
    expect(wireguard.changes).toEqual([{ kind: "set", publicKey: gatewayKey }]);
  });

  it("tries again after failures, and logs each once", async () => {
    const wireguard = new FakeInterface();
    let calls = 0;
    const { lines } = start(wireguard, async () => {
      calls += 1;
      if (calls < 4) throw new ConnectError("no route", Code.Unavailable);
      return agreedKey(7);
    });
    await expect.poll(() => wireguard.keyOf(gatewayKey), poll).toBe(7);
    expect(lines.map(({ msg, reason }) => [msg, reason])).toEqual([
      [
        "the agreement failed; trying again",
        "http://127.0.0.1:8080 cannot be reached: no route; name a running server with --url",
      ],
      ["agreed on a pre-shared key and set it", undefined],
      ["the agreement works again", undefined],
    ]);
  });

  it("sets its key again when another program changes it, or makes the interface anew", async () => {
    const wireguard = new FakeInterface();
    start(wireguard, async () => agreedKey(7));
    await expect.poll(() => wireguard.keyOf(gatewayKey), poll).toBe(7);
    wireguard.put({ publicKey: gatewayKey, presharedKey: empty });
    await expect.poll(() => wireguard.keyOf(gatewayKey), poll).toBe(7);
    wireguard.isDown = true;
    wireguard.peers.clear();
    wireguard.isDown = false;
    await expect.poll(() => wireguard.keyOf(gatewayKey), poll).toBe(7);
  });

  it("leaves a random key when it stops", async () => {
    const wireguard = new FakeInterface();
    const { stop } = start(wireguard, async () => agreedKey(7));
    await expect.poll(() => wireguard.keyOf(gatewayKey), poll).toBe(7);
    await stop();
    expect(wireguard.keyOf(gatewayKey)).toBe("random");
  });

  it("has no key in its log", async () => {
    const wireguard = new FakeInterface();
    const { messages, lines } = start(wireguard, async () => Uint8Array.fromHex("5e".repeat(32)));
    await expect.poll(messages, poll).toContain("agreed on a pre-shared key and set it");
    expect(JSON.stringify(lines)).not.toMatch(/5e5e|Xl5e|94,94/);
  });
});

describe("the gateway's agent", () => {
  type Event = NonNullable<WatchPeersResponse["event"]>;

  /** A server whose streams the test feeds. */
  function start(wireguard: FakeInterface, isAwaited: () => boolean | Promise<boolean> = () => true) {
    const made = makeDeps(wireguard);
    const reports: unknown[] = [];
    const feeds: ((event: Event | ConnectError) => void)[] = [];
    async function* watch(): AsyncGenerator<WatchPeersResponse> {
      const queue: (Event | ConnectError)[] = [];
      let wake = (): void => {};
      feeds.push((event) => {
        queue.push(event);
        wake();
      });
      for (;;) {
        const event = queue.shift();
        if (event instanceof ConnectError) throw event;
        if (event !== undefined) yield create(WatchPeersResponseSchema, { event } as never);
        else
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
      }
    }
    const report = async (one: unknown) => {
      reports.push(one);
      return isAwaited();
    };
    const agent = runUntilStopped((stop) => runGatewayAgent({ ...made.deps, watch, report }, stop));
    /** Waits for the stream of this number. */
    const feed = async (...events: (Event | ConnectError)[]): Promise<void> => {
      await expect.poll(() => feeds.length, poll).toBeGreaterThan(0);
      for (const event of events) feeds.at(-1)?.(event);
    };
    return { ...made, ...agent, reports, feeds, feed };
  }

  const peer = (letter: string, address: string, tunnelId = `tunnel-${letter}`): Event =>
    ({
      case: "peer",
      value: { tunnelId, wireguardPublicKey: bytesOf(letter), assignedIp: address },
    }) as Event;
  const listed = { case: "listed", value: {} } as Event;
  const key = (letter: string, presharedKey: Uint8Array, tunnel = letter): Event =>
    ({
      case: "key",
      value: { tunnelId: `tunnel-${tunnel}`, wireguardPublicKey: bytesOf(letter), epoch: 5, presharedKey },
    }) as Event;
  const bytesOf = (letter: string) => Uint8Array.fromBase64(idOf(letter));
  const idOf = (letter: string) => `${letter.repeat(42)}A=`;

  it("gives the peers of an earlier run random keys at once, and removes those that the server does not list", async () => {
    const wireguard = new FakeInterface(
      { publicKey: idOf("a"), presharedKey: agreedKey(1), allowedIps: ["10.8.0.2/32"] },
      { publicKey: idOf("b"), presharedKey: agreedKey(2), allowedIps: ["10.8.0.3/32"] },
      { publicKey: idOf("c"), presharedKey: agreedKey(3), allowedIps: ["10.8.0.0/24"] },
      { publicKey: idOf("d"), presharedKey: agreedKey(4), allowedIps: ["192.168.0.4/32"] },
      { publicKey: idOf("e"), presharedKey: agreedKey(5), allowedIps: ["10.8.0.6/32", "10.9.0.0/16"] },
    );
    const { feed } = start(wireguard);
    await expect
      .poll(() => "abcde".split("").map((letter) => wireguard.keyOf(idOf(letter))), poll)
      .toEqual([...["random", "random"], ...[3, 4, 5]]);
    await feed(peer("a", "10.8.0.2"), peer("f", "10.8.0.7"), listed);
    await expect.poll(() => [...wireguard.peers.keys()], poll).toEqual("acdef".split("").map(idOf));
    expect(wireguard.peers.get(idOf("f"))?.allowedIps).toEqual(["10.8.0.7/32"]);
    expect(wireguard.keyOf(idOf("f"))).toBe("random");
  });

  it("sets a key and reports it", async () => {
    const wireguard = new FakeInterface();
    const { feed, reports } = start(wireguard);
    await feed(peer("a", "10.8.0.2"), listed, key("a", agreedKey(7)));
    await expect.poll(() => reports, poll).toEqual([{ tunnelId: "tunnel-a", epoch: 5, applied: true }]);
    expect(wireguard.keyOf(idOf("a"))).toBe(7);
    expect(wireguard.changes.map(({ kind }) => kind)).toEqual(["set", "set"]);
  });

  it.each([
    ["an empty key", "a", empty],
    ["a short key", "a", new Uint8Array(31).fill(7)],
    ["a key for an unknown peer", "z", agreedKey(7)],
    ["a key for the former WireGuard key of a tunnel", "b", agreedKey(7), "a"],
  ])("does not set %s, and reports that", async (_name, letter, presharedKey, tunnel?) => {
    const wireguard = new FakeInterface();
    const { feed, reports } = start(wireguard);
    await feed(peer("a", "10.8.0.2"), listed, key(letter, presharedKey, tunnel));
    await expect.poll(() => reports, poll).toMatchObject([{ applied: false }]);
    expect(wireguard.keyOf(idOf("a"))).toBe("random");
  });

  it("leaves a peer alone that the operator configured, whoever registers and leaves with its key", async () => {
    const configured = { publicKey: idOf("a"), presharedKey: agreedKey(4), allowedIps: ["10.9.0.5/32"] };
    const wireguard = new FakeInterface(configured);
    const { feed, reports, lines } = start(wireguard);
    await feed(peer("a", "10.8.0.2"), peer("b", "10.8.0.3"), listed, key("a", agreedKey(7)));
    await expect.poll(() => reports, poll).toMatchObject([{ applied: false }]);
    await feed({ case: "removed", value: { tunnelId: "tunnel-a" } } as Event, key("b", agreedKey(8)));
    await expect.poll(() => wireguard.keyOf(idOf("b")), poll).toBe(8);
    expect(wireguard.peers.get(idOf("a"))).toMatchObject(configured);
    expect(lines.filter(({ msg }) => String(msg).includes("leaves it alone"))).toHaveLength(1);
  });

  it("reports that it could not set a key, and has it nowhere", async () => {
    const wireguard = new FakeInterface();
    const { feed, reports } = start(wireguard);
    await feed(peer("a", "10.8.0.2"), listed);
    await expect.poll(() => wireguard.keyOf(idOf("a")), poll).toBe("random");
    wireguard.isDown = true;
    await feed(key("a", agreedKey(7)));
    await expect.poll(() => reports, poll).toMatchObject([{ applied: false }]);
    wireguard.isDown = false;
    await expect.poll(() => wireguard.keyOf(idOf("a")), poll).toBe("random");
  });

  it("puts the former key back if no peer waits for the report", async () => {
    const wireguard = new FakeInterface();
    const { feed, reports } = start(wireguard, () => false);
    await feed(peer("a", "10.8.0.2"), listed, key("a", agreedKey(7)));
    await expect.poll(() => reports, poll).toMatchObject([{ applied: true }]);
    await expect.poll(() => wireguard.keyOf(idOf("a")), poll).toBe("random");
  });

  it("keeps a newer key when an older one's report is answered late", async () => {
    const wireguard = new FakeInterface();
    const [late, other] = [Promise.withResolvers<boolean>(), Promise.withResolvers<boolean>()];
    const answers = [late.promise, other.promise];
    const { feed, reports } = start(wireguard, () => answers.shift() ?? true);
    await feed(peer("a", "10.8.0.2"), listed, key("a", agreedKey(7)), key("a", agreedKey(8)));
    await expect.poll(() => reports.length, poll).toBe(2);
    late.resolve(false);
    await feed(peer("b", "10.8.0.3"));
    await expect.poll(() => wireguard.peers.size, poll).toBe(2);
    expect(wireguard.keyOf(idOf("a"))).toBe(8);
  });

  it("does not put a peer back that left while the server answered a report", async () => {
    const wireguard = new FakeInterface();
    const late = Promise.withResolvers<boolean>();
    const { feed, reports } = start(wireguard, () => late.promise);
    await feed(peer("a", "10.8.0.2"), listed, key("a", agreedKey(7)));
    await expect.poll(() => reports.length, poll).toBe(1);
    await feed({ case: "removed", value: { tunnelId: "tunnel-a" } } as Event);
    await expect.poll(() => wireguard.peers.size, poll).toBe(0);
    late.resolve(false);
    await feed(peer("b", "10.8.0.3"));
    await expect.poll(() => wireguard.peers.size, poll).toBe(1);
    expect(wireguard.changes.map(({ kind }) => kind)).toEqual(["set", "set", "remove", "set"]);
  });

  it("removes a peer whose tunnel ended, or got another key", async () => {
    const wireguard = new FakeInterface();
    const { feed } = start(wireguard);
    await feed(peer("a", "10.8.0.2"), peer("b", "10.8.0.3"), listed);
    await expect.poll(() => wireguard.peers.size, poll).toBe(2);
    const other = peer("c", "10.8.0.3", "tunnel-b");
    await feed({ case: "removed", value: { tunnelId: "tunnel-a" } } as Event, other);
    await expect.poll(() => [...wireguard.peers.keys()], poll).toEqual([idOf("c")]);
  });

  it("opens the stream again when it ends, and keeps the keys of its peers", async () => {
    const wireguard = new FakeInterface();
    const { feed, feeds, messages } = start(wireguard);
    await feed(peer("a", "10.8.0.2"), listed, key("a", agreedKey(7)));
    await expect.poll(() => wireguard.keyOf(idOf("a")), poll).toBe(7);
    await feed(new ConnectError("the server stops", Code.Unavailable));
    await expect.poll(() => feeds.length, poll).toBe(2);
    await feed(peer("a", "10.8.0.2"), listed);
    await expect.poll(messages, poll).toContain("the stream of peers works again");
    expect(wireguard.keyOf(idOf("a"))).toBe(7);
  });

  it.each([
    ["an address of another network", peer("a", "192.168.0.1")],
    ["an address with a line break", peer("a", "10.8.0.2/32\nreplace_peers=true")],
  ])("ends a stream with %s", async (_name, event) => {
    const wireguard = new FakeInterface();
    const { feed, feeds } = start(wireguard);
    await feed(event, listed);
    await expect.poll(() => feeds.length, poll).toBe(2);
    expect(wireguard.changes).toEqual([]);
  });

  it("ends a stream with more tunnels than the network has addresses", async () => {
    const { feed, feeds } = start(new FakeInterface());
    await feed(...Array.from({ length: 65_537 }, (_, i) => peer("a", "10.8.0.2", `tunnel-${i}`)));
    await expect.poll(() => feeds.length, poll).toBe(2);
  });

  it("ends when another agent takes over", async () => {
    const replaced = new ConnectError("another agent has connected", Code.Aborted, undefined, [
      { desc: ErrorInfoSchema, value: { reason: "GATEWAY_REPLACED", domain: "quantum-safe-playground" } },
    ]);
    const wireguard = new FakeInterface();
    const { feed, end } = start(wireguard);
    await feed(peer("a", "10.8.0.2"), listed, key("a", agreedKey(7)), replaced);
    await expect(end).rejects.toMatchObject({ exitCode: 3, message: /GATEWAY_REPLACED/ });
    expect(wireguard.keyOf(idOf("a"))).toBe("random");
  });

  it("keeps nothing for the events of a stream that lasts", async () => {
    const wireguard = new FakeInterface();
    const { feed } = start(wireguard);
    await feed(peer("a", "10.8.0.2"), listed);
    await expect.poll(() => wireguard.peers.size, poll).toBe(1);
    const countFunctions = () => queryObjects(Function, { format: "count" });
    const before = countFunctions();
    await feed(...Array.from({ length: 2000 }, () => peer("a", "10.8.0.2")), peer("b", "10.8.0.3"));
    await expect.poll(() => wireguard.peers.size, poll).toBe(2);
    expect(countFunctions() - before).toBeLessThan(1000);
  });

  it("leaves random keys when it stops", async () => {
    const wireguard = new FakeInterface();
    const { feed, stop } = start(wireguard);
    await feed(peer("a", "10.8.0.2"), listed, key("a", agreedKey(7)));
    await expect.poll(() => wireguard.keyOf(idOf("a")), poll).toBe(7);
    await stop();
    expect(wireguard.keyOf(idOf("a"))).toBe("random");
  });
});
