/** Ten minutes of traffic with the timing of users, while agents, server and WireGuard are killed in turn. */
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { endAfterAll } from "../../../test/support/at-end.ts";
import { buildLab, type End, type Followed, type Lab, missing, needs } from "./lab.ts";

const minutes = 60_000;
const timeout = 20 * minutes;
/** WireGuard's 120 seconds, a keepalive, and a restart of the session. */
const renewalMs = 140_000;
const proven = /a handshake used the new pre-shared key/;

interface Peer {
  readonly end: End;
  readonly state: string;
  readonly address: string;
  agent: Followed;
}

describe.skipIf(missing.length > 0)(`ten minutes of traffic${needs}`, { timeout }, () => {
  const atEnd = endAfterAll();
  let lab: Lab;
  let server: Followed;
  let gatewayAgent: Followed;
  let first: Peer;
  let second: Peer;
  let traffic: Followed;
  let startedMs: number;
  /** Handshakes with an agreed key, also of agents that were killed. */
  let renewals = 0;

  async function startPeer(): Promise<Peer> {
    const end = await lab.makeEnd();
    const { state, address } = await lab.join(end);
    await end.start(address);
    return { end, state, address, agent: await lab.startPeerAgent(end, state) };
  }

  /** Does something, after which the peer must renew its key in time. */
  async function heals(peer: Peer, what: string, disturb: () => Promise<void>): Promise<void> {
    const sinceMs = performance.now();
    const [from, before] = [peer.agent.lines.length, peer.agent];
    await disturb();
    await peer.agent.next(proven, peer.agent === before ? from : 0);
    const tookMs = performance.now() - sinceMs;
    console.log(`${what}: a handshake with a new key after ${Math.round(tookMs / 1000)} s`);
    expect(tookMs).toBeLessThan(renewalMs);
  }

  beforeAll(async () => {
    if (missing.length > 0) return;
    lab = await buildLab(atEnd);
    server = await lab.startServer();
    gatewayAgent = await lab.startGatewayAgent();
    [first, second] = [await startPeer(), await startPeer()];
    await first.agent.next(proven, 0);
    await second.agent.next(proven, 0);
    traffic = await lab.startTraffic(first.end);
    startedMs = performance.now();
  }, timeout);

  it.each([
    [
      "the gateway's agent",
      async () => {
        await gatewayAgent.stop("SIGKILL");
        gatewayAgent = await lab.startGatewayAgent();
      },
    ],
    [
      "the server",
      async () => {
        await server.stop("SIGKILL");
        server = await lab.startServer();
      },
    ],
    [
      "the peer's agent",
      async () => {
        await first.agent.stop("SIGKILL");
        first.agent = await lab.startPeerAgent(first.end, first.state);
      },
    ],
  ])("heals within one renewal after %s was killed", async (killed, killAndStart) => {
    await heals(first, `${killed} killed`, killAndStart);
    renewals += 1;
  });

  it("heals at once after a peer was killed", async () => {
    await heals(second, "peer killed", async () => {
      await second.end.kill();
      await second.end.start(second.address);
    });
    const other = await lab.startTraffic(second.end);
    await other.stop();
  });

  it("has lost no connection after ten minutes and four renewals", async () => {
    while (performance.now() - startedMs < 10 * minutes) await first.agent.next(proven);
    renewals += first.agent.lines.filter((line) => proven.test(line)).length - 1;
    await traffic.next(/echoed/);
    expect(traffic.process.exitCode).toBeNull();
    const seconds = traffic.lines.map((line) => JSON.parse(line) as { echoed: number; longestMs: number });
    console.log({
      seconds: seconds.length,
      renewals,
      echoed: seconds.at(-1)?.echoed,
      longestWaitMs: Math.max(...seconds.map(({ longestMs }) => longestMs)),
    });
    expect(seconds.length).toBeGreaterThanOrEqual(600);
    expect(renewals).toBeGreaterThanOrEqual(4);
    expect(readFileSync(first.state, "utf8")).not.toContain(await first.end.show("preshared-keys"));
  });
});
