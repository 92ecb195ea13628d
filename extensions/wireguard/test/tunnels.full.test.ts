/** Ten minutes of traffic with the timing of users, while agents, server and WireGuard are killed in turn. */
import { readFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { beforeAll, describe, expect, it } from "vitest";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { WireguardService } from "#gen/wireguard/wireguard_service_pb.ts";
import type { ApiClient } from "../../../src/cli/connection/api-client.ts";
import { withProvider } from "../../../src/cli/keys/read-keys.ts";
import { endAfterAll } from "../../../test/support/at-end.ts";
import { password } from "../../../test/support/passwords.ts";
import { refusal } from "../../../test/support/refusal.ts";
import { agreeOnKey, fetchTunnel } from "../peer-agreement.ts";
import { openPeer, readPeerState } from "../peer-state.ts";
import { buildLab, done, type End, type Followed, type Lab, missing, needs } from "./lab.ts";

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

  it("cannot be replaced by a replayed or reflected exchange", async () => {
    const end = await lab.makeEnd();
    const { state } = await lab.join(end);
    const transport = createGrpcTransport({ baseUrl: lab.url, idleConnectionTimeoutMs: 1000 });
    const { token } = await createClient(PqcService, transport).issueToken({ username: "ada", password });
    const headers = { authorization: `Bearer ${token}` };
    const client = createClient(WireguardService, transport);
    const recorded: { method: string; request: unknown; answer: unknown }[] = [];
    const server = {
      async ask(method, request) {
        const { message } = await transport.unary(method, undefined, undefined, headers, request);
        recorded.push({ method: method.name, request, answer: message });
        return message;
      },
    } satisfies Pick<ApiClient, "ask">;
    await withProvider(async (provider) => {
      const peer = await openPeer(provider, readPeerState(state, lab.url), state);
      const { serverTimeMs } = await fetchTunnel({ server, provider, peer });
      await agreeOnKey({ server, provider, peer }, serverTimeMs);
    });
    const find = (name: string) => recorded.find(({ method }) => method === name);
    const agreed = find("Agree")?.request as Parameters<typeof client.agree>[0];
    const confirmed = find("Confirm") as {
      request: Parameters<typeof client.confirm>[0];
      answer: { confirmation: Uint8Array };
    };
    const keys = () => done("wg", ["show", lab.gateway.interfaceName, "preshared-keys"]);
    const before = await keys();
    const reason = async (call: Promise<unknown>) => (await refusal(call)).reason;
    expect(await reason(client.agree(agreed, { headers }))).toBe("EPOCH_USED");
    expect(await reason(client.confirm(confirmed.request, { headers }))).toBe("AGREEMENT_NOT_FOUND");
    const epoch = Number(agreed.epoch) + 1;
    for (const confirmation of [confirmed.request.confirmation, confirmed.answer.confirmation]) {
      await wait(1100); // A tunnel may start one agreement per second.
      await client.agree({ ...agreed, epoch }, { headers });
      const call = client.confirm(
        { ...confirmed.request, epoch, confirmation: confirmation ?? new Uint8Array() },
        { headers },
      );
      expect(await reason(call)).toBe("CONFIRMATION_INVALID");
    }
    expect(await keys()).toBe(before);
  });

  it("heals within one renewal after the gateway's agent was killed", async () => {
    await heals(first, "gateway's agent killed", async () => {
      await gatewayAgent.stop("SIGKILL");
      gatewayAgent = await lab.startGatewayAgent();
    });
    renewals += 1;
  });

  it("heals within one renewal after the server was killed", async () => {
    await heals(first, "server killed", async () => {
      await server.stop("SIGKILL");
      server = await lab.startServer();
    });
    renewals += 1;
  });

  it("heals within one renewal after a peer's agent was killed", async () => {
    await heals(first, "peer's agent killed", async () => {
      await first.agent.stop("SIGKILL");
      first.agent = await lab.startPeerAgent(first.end, first.state);
    });
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
