import { expect, it, onTestFinished, vi } from "vitest";
import { describeOnSqlite } from "../../../test/services/app-under-test.ts";
import { makePeer } from "../../../test/services/vpn-peer.ts";
import { flipBit } from "../../../test/support/bytes.ts";
import { outcomeOf, outcomesOf, refusal } from "../../../test/support/refusal.ts";
import {
  type Agent,
  type AgentOptions,
  connectAgent,
  invalidKeys,
  joinPeer,
  random32,
  type StartedAgreement,
  startAgreement,
} from "./agent.ts";
import { controlAgreementClock, startIn, type WireguardServer } from "./wireguard-server.ts";

const noSuchTunnel = "tunnel-00000000-0000-4000-8000-000000000000";
const notFound = { code: "NotFound", reason: "TUNNEL_NOT_FOUND" };
const disconnected = { code: "Unavailable", reason: "GATEWAY_DISCONNECTED" };
const agreementNotFound = { code: "NotFound", reason: "AGREEMENT_NOT_FOUND" };
const epochUsed = { code: "FailedPrecondition", reason: "EPOCH_USED" };

/** Connects an agent that is the only gateway until the test ends, and a peer. */
async function connectBoth(server: WireguardServer, options?: AgentOptions) {
  const agent = await connectAgent(server.transport, options);
  return { agent, peer: await joinPeer(server.transport) };
}

/** The same, with an agreement that the peer has started. */
async function agreeIn(server: WireguardServer, options?: AgentOptions) {
  const { agent, peer } = await connectBoth(server, options);
  return { server, agent, peer, agreement: await startAgreement(server.wireguard, peer) };
}

function confirm({ wireguard }: WireguardServer, { tunnelId, epoch, peerConfirmation }: StartedAgreement) {
  return wireguard.confirm({ tunnelId, epoch, confirmation: peerConfirmation });
}

const hex = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString("hex");
const lastKey = ({ keys }: Agent): string => hex(keys.at(-1)?.presharedKey);

describeOnSqlite("wireguard.WireguardService.RegisterKey", startIn, (start, shared) => {
  it("returns the gateway's side of the configuration, and notifies the agent", async () => {
    const { vpn, wireguard, transport } = await shared();
    const agent = await connectAgent(transport);
    const { tunnelId, assignedIp } = await vpn.registerPeer({ publicKey: makePeer().publicKey });
    const wireguardPublicKey = random32();
    expect(await wireguard.registerKey({ tunnelId, wireguardPublicKey })).toMatchObject({
      ...{ status: "success", assignedIp, gatewayAddress: "10.8.0.1" },
      gatewayWireguardPublicKey: agent.wireguardPublicKey,
      gatewayEndpoint: "vpn.example.com:51820",
    });
    await expect.poll(() => agent.peers.get(tunnelId)).toMatchObject({ wireguardPublicKey, assignedIp });
  });

  it("gives a tunnel another key, which starts new epochs; the same key changes nothing", async () => {
    const server = await shared();
    const { wireguard } = server;
    const { agent, peer } = await connectBoth(server);
    const { tunnelId, wireguardPublicKey } = peer;
    await confirm(server, await startAgreement(wireguard, peer, 1000));
    const lastEpoch = async () => (await wireguard.getTunnel({ tunnelId, nonce: random32() })).lastEpoch;
    await wireguard.registerKey({ tunnelId, wireguardPublicKey });
    expect(await lastEpoch()).toBe(1000);
    const other = random32();
    await wireguard.registerKey({ tunnelId, wireguardPublicKey: other });
    expect(await lastEpoch()).toBe(0);
    await expect.poll(() => hex(agent.peers.get(tunnelId)?.wireguardPublicKey)).toBe(hex(other));
  });

  it("refuses a tunnel whose key the server generated, and an unknown tunnel", async () => {
    const server = await shared();
    await connectAgent(server.transport);
    const { tunnelId } = await server.vpn.registerPeer({});
    const register = (id: string) =>
      refusal(server.wireguard.registerKey({ tunnelId: id, wireguardPublicKey: random32() }));
    expect(await register(tunnelId)).toEqual({
      code: "FailedPrecondition",
      reason: "TUNNEL_KEY_SERVER_HELD",
    });
    expect(await register(noSuchTunnel)).toEqual(notFound);
  });

  it("refuses a key of another tunnel or of the gateway, but not of a disconnected tunnel", async () => {
    const server = await shared();
    const { agent, peer: holder } = await connectBoth(server);
    const { tunnelId } = await joinPeer(server.transport);
    const register = (wireguardPublicKey: Uint8Array<ArrayBuffer>) =>
      outcomeOf(server.wireguard.registerKey({ tunnelId, wireguardPublicKey }));
    expect(await register(holder.wireguardPublicKey)).toBe("WIREGUARD_KEY_TAKEN");
    expect(await register(agent.wireguardPublicKey)).toBe("WIREGUARD_KEY_TAKEN");
    await server.vpn.disconnect({ tunnelId: holder.tunnelId });
    expect(await register(holder.wireguardPublicKey)).toBe("answer");
    const owner = () => agent.peers.get(tunnelId)?.wireguardPublicKey;
    await expect.poll(() => hex(owner())).toBe(hex(holder.wireguardPublicKey));
    expect(agent.peers.has(holder.tunnelId)).toBe(false);
  });

  it.each(invalidKeys)("refuses a WireGuard key: %s", async (_, wireguardPublicKey) => {
    const server = await shared();
    const { peer } = await connectBoth(server);
    const { tunnelId } = peer;
    expect(await refusal(server.wireguard.registerKey({ tunnelId, wireguardPublicKey }))).toMatchObject({
      code: "InvalidArgument",
      fields: ["wireguardPublicKey"],
    });
  });

  it("and all calls of peers fail while no agent is connected", async () => {
    const server = await start();
    const { wireguard } = server;
    const { agent, peer } = await connectBoth(server);
    const agreement = await startAgreement(wireguard, peer);
    agent.close();
    await expect.poll(async () => (await wireguard.listPeers({})).gatewayConnected).toBe(false);
    const { tunnelId, wireguardPublicKey } = peer;
    expect(await refusal(wireguard.registerKey({ tunnelId, wireguardPublicKey }))).toEqual(disconnected);
    expect(await refusal(wireguard.getTunnel({ tunnelId, nonce: random32() }))).toEqual(disconnected);
    expect(await refusal(startAgreement(wireguard, peer))).toEqual(disconnected);
    expect(await refusal(confirm(server, agreement))).toEqual(disconnected);
  });
});

describeOnSqlite("wireguard.WireguardService.Agree and Confirm", startIn, (start, shared) => {
  it("give both sides one key, and store the epoch", async () => {
    const { server, agent, peer, agreement } = await agreeIn(await shared());
    const { confirmation } = await confirm(server, agreement);
    expect(hex(confirmation)).toBe(hex(agreement.gatewayConfirmation));
    expect(lastKey(agent)).toBe(hex(agreement.presharedKey));
    const { tunnelId, epoch } = agreement;
    expect(agent.keys.at(-1)).toMatchObject({
      ...{ tunnelId, epoch },
      wireguardPublicKey: peer.wireguardPublicKey,
    });
    await expect.poll(() => agent.awaited).toEqual([true]);
    const { peers } = await server.wireguard.listPeers({});
    expect(peers.find((one) => one.tunnelId === tunnelId)?.lastEpoch).toBe(epoch);
  });

  /** Makes an agreement; `agree` starts the next one, a second later. */
  async function agreeOnce() {
    const server = await shared();
    const skipSecond = controlAgreementClock();
    const { peer } = await connectBoth(server);
    const epoch = Date.now();
    await confirm(server, await startAgreement(server.wireguard, peer, epoch));
    const agree = (next: number) => {
      skipSecond();
      return startAgreement(server.wireguard, peer, next);
    };
    return { epoch, agree };
  }

  it.each([
    ["the last one", 0, "EPOCH_USED"],
    ["one before it", -1, "EPOCH_USED"],
    ["the next one", 1, "answer"],
  ])("accept each epoch once: %s", async (_, distance, outcome) => {
    const { epoch, agree } = await agreeOnce();
    expect(await outcomeOf(agree(epoch + distance))).toBe(outcome);
  });

  it.each([
    ["59 seconds", 59_000, "answer"],
    ["two minutes", 120_000, "EPOCH_IN_FUTURE"],
    ["a thousand years", 31_557_600_000_000, "EPOCH_IN_FUTURE"],
  ])("accept an epoch only if it is at most a minute ahead: %s", async (_, aheadMs, outcome) => {
    const server = await shared();
    const { peer } = await connectBoth(server);
    expect(await outcomeOf(startAgreement(server.wireguard, peer, Date.now() + aheadMs))).toBe(outcome);
  });

  it("accept the next epoch after the server's clock was set back", async () => {
    const { epoch, agree } = await agreeOnce();
    vi.setSystemTime(epoch - 3_600_000);
    onTestFinished(() => void vi.useRealTimers());
    expect(await outcomeOf(agree(epoch + 1))).toBe("answer");
    expect(await outcomeOf(agree(epoch + 60_001))).toBe("EPOCH_IN_FUTURE");
  });

  it.each([
    ["0", 0],
    ["a fraction", 1.5],
    ["beyond 2^53", 2 ** 53],
    ["not a number", Number.NaN],
  ])("refuse an epoch that is %s", async (_, epoch) => {
    const { wireguard } = await shared();
    const request = { tunnelId: noSuchTunnel, epoch };
    const agree = { ...request, nonce: random32(), ephemeralPublicKey: makePeer().publicKey };
    const refused = { code: "InvalidArgument", fields: ["epoch"] };
    expect(await refusal(wireguard.agree(agree))).toMatchObject(refused);
    expect(await refusal(wireguard.confirm({ ...request, confirmation: random32() }))).toMatchObject(refused);
  });

  it("refuse unknown tunnels, and tunnels without a WireGuard key", async () => {
    const { wireguard, vpn, transport } = await shared();
    await connectAgent(transport);
    const kem = makePeer();
    const peer = { ...kem, tunnelId: noSuchTunnel, wireguardPublicKey: random32() };
    expect(await refusal(startAgreement(wireguard, peer))).toEqual(notFound);
    const unconfirmed = { tunnelId: noSuchTunnel, epoch: 1, confirmation: random32() };
    expect(await refusal(wireguard.confirm(unconfirmed))).toEqual(notFound);
    const { tunnelId } = await vpn.registerPeer({ publicKey: kem.publicKey });
    const missing = { code: "FailedPrecondition", reason: "WIREGUARD_KEY_MISSING" };
    expect(await refusal(startAgreement(wireguard, { ...peer, tunnelId }))).toEqual(missing);
    expect(await refusal(wireguard.getTunnel({ tunnelId, nonce: random32() }))).toEqual(missing);
  });

  it("refuse an ephemeral key that ML-KEM-1024 forbids, without counting it", async () => {
    const server = await shared();
    const { peer } = await connectBoth(server);
    const request = { tunnelId: peer.tunnelId, epoch: Date.now(), nonce: random32() };
    // FIPS 203, section 7.2: every coefficient must be below 3329.
    const ephemeralPublicKey = new Uint8Array(1568).fill(0xff);
    expect(await refusal(server.wireguard.agree({ ...request, ephemeralPublicKey }))).toEqual({
      code: "InvalidArgument",
      reason: "KEY_INVALID",
      fields: ["ephemeralPublicKey"],
    });
    expect(await outcomeOf(startAgreement(server.wireguard, peer))).toBe("answer");
  });

  it("start one agreement a second for each tunnel, even concurrently", async () => {
    const server = await shared();
    const skipSecond = controlAgreementClock();
    const { peer } = await connectBoth(server);
    const other = await joinPeer(server.transport);
    const epoch = Date.now();
    const calls = [peer, peer, peer, other].map((one) => startAgreement(server.wireguard, one, epoch));
    const tooSoon = { code: "ResourceExhausted", reason: "AGREEMENT_TOO_SOON" };
    expect(await outcomesOf(calls)).toEqual({ answered: 2, refusals: [tooSoon, tooSoon] });
    skipSecond();
    expect(await outcomeOf(startAgreement(server.wireguard, peer, epoch))).toBe("answer");
  });

  it("give an agreement one attempt: a wrong confirmation ends it", async () => {
    const { server, agent, agreement } = await agreeIn(await shared());
    const wrong = { ...agreement, peerConfirmation: Uint8Array.from(flipBit(agreement.peerConfirmation, 0)) };
    expect(await refusal(confirm(server, wrong))).toEqual({
      code: "PermissionDenied",
      reason: "CONFIRMATION_INVALID",
    });
    expect(await refusal(confirm(server, agreement))).toEqual(agreementNotFound);
    expect(agent.keys).toEqual([]);
  });

  it("refuse a recorded confirmation, before and after the next agreement", async () => {
    const server = await shared();
    const skipSecond = controlAgreementClock();
    const { agent, peer } = await connectBoth(server);
    const recorded = await startAgreement(server.wireguard, peer);
    await confirm(server, recorded);
    expect(await refusal(confirm(server, recorded))).toEqual(agreementNotFound);
    skipSecond();
    const { epoch } = await startAgreement(server.wireguard, peer, recorded.epoch + 1);
    expect(await refusal(confirm(server, recorded))).toEqual(agreementNotFound);
    expect(await outcomeOf(confirm(server, { ...recorded, epoch }))).toBe("CONFIRMATION_INVALID");
    expect(agent.keys).toHaveLength(1);
  });

  it("end with the WireGuard key for which they were made", async () => {
    const { server, agent, peer, agreement } = await agreeIn(await shared());
    await server.wireguard.registerKey({ tunnelId: peer.tunnelId, wireguardPublicKey: random32() });
    expect(await refusal(confirm(server, agreement))).toEqual(agreementNotFound);
    expect(agent.keys).toEqual([]);
  });

  it("end with their tunnel", async () => {
    const { server, agent, peer, agreement } = await agreeIn(await shared());
    await server.vpn.disconnect({ tunnelId: peer.tunnelId });
    expect(await refusal(confirm(server, agreement))).toEqual(notFound);
    expect(await refusal(startAgreement(server.wireguard, peer))).toEqual(notFound);
    await expect.poll(() => agent.removed).toContain(hex(peer.wireguardPublicKey));
    expect(agent.keys).toEqual([]);
  });

  it("end with the gateway's WireGuard key, but not with its agent's connection", async () => {
    const { server, agent, agreement } = await agreeIn(await shared());
    const { wireguardPublicKey } = agent;
    const again = await connectAgent(server.transport, { wireguardPublicKey });
    expect(await outcomeOf(confirm(server, agreement))).toBe("answer");
    expect(lastKey(again)).toBe(hex(agreement.presharedKey));
    const other = await startAgreement(server.wireguard, await joinPeer(server.transport));
    const replaced = await connectAgent(server.transport);
    expect(await refusal(confirm(server, other))).toEqual(disconnected);
    expect(replaced.keys).toEqual([]);
  });

  it("fail if the agent could not set the key; the epoch is used", async () => {
    const skipSecond = controlAgreementClock();
    const { server, peer, agreement } = await agreeIn(await shared(), { apply: () => false });
    expect(await refusal(confirm(server, agreement))).toEqual({
      code: "FailedPrecondition",
      reason: "KEY_NOT_SET",
    });
    skipSecond();
    expect(await refusal(startAgreement(server.wireguard, peer, agreement.epoch))).toEqual(epochUsed);
  });

  it("fail if the agent disconnects before its report", async () => {
    const server = await shared();
    const { agent, peer } = await connectBoth(server, { apply: () => undefined });
    const failed = refusal(confirm(server, await startAgreement(server.wireguard, peer)));
    await expect.poll(() => agent.keys.length).toBe(1);
    agent.close();
    expect(await failed).toEqual(disconnected);
  });

  it("notify the agent that a peer no longer waits for its report", async () => {
    const server = await shared();
    const { agent, peer } = await connectBoth(server, { apply: () => undefined });
    const { tunnelId, epoch, peerConfirmation } = await startAgreement(server.wireguard, peer);
    const leaving = new AbortController();
    const request = { tunnelId, epoch, confirmation: peerConfirmation };
    const left = refusal(server.wireguard.confirm(request, { signal: leaving.signal }));
    await expect.poll(() => agent.keys.length).toBe(1);
    leaving.abort();
    expect((await left).code).toBe("Canceled");
    const report = { tunnelId, epoch, applied: true };
    await expect.poll(async () => (await server.wireguard.reportKey(report)).awaited).toBe(false);
  });

  it("ignore reports about other epochs and tunnels", async () => {
    const { server, agent, agreement } = await agreeIn(await shared(), { apply: () => undefined });
    const { tunnelId, epoch } = agreement;
    const confirmed = outcomeOf(confirm(server, agreement));
    await expect.poll(() => agent.keys.length).toBe(1);
    const report = async (about: { tunnelId: string; epoch: number }) =>
      (await server.wireguard.reportKey({ ...about, applied: true })).awaited;
    expect(await report({ tunnelId, epoch: epoch - 1 })).toBe(false);
    expect(await report({ tunnelId: noSuchTunnel, epoch })).toBe(false);
    expect(await report({ tunnelId, epoch })).toBe(true);
    expect(await report({ tunnelId, epoch })).toBe(false);
    expect(await confirmed).toBe("answer");
  });

  it("replace a key that the agent has not reported", async () => {
    const server = await shared();
    const skipSecond = controlAgreementClock();
    let isSlow = true;
    const { agent, peer } = await connectBoth(server, { apply: () => (isSlow ? undefined : true) });
    const first = refusal(confirm(server, await startAgreement(server.wireguard, peer, 1000)));
    await expect.poll(() => agent.keys.length).toBe(1);
    skipSecond();
    isSlow = false;
    const second = await startAgreement(server.wireguard, peer, 1001);
    expect(await outcomeOf(confirm(server, second))).toBe("answer");
    expect(await first).toEqual(epochUsed);
    expect(lastKey(agent)).toBe(hex(second.presharedKey));
  });

  it("survive a restart of the server: epochs stay used, pending agreements end", async () => {
    const server = await start();
    const { peer } = await connectBoth(server);
    const used = await startAgreement(server.wireguard, peer);
    await confirm(server, used);
    const other = await joinPeer(server.transport);
    const pending = await startAgreement(server.wireguard, other);
    await server.close();
    const again = await start(server.database);
    const agent = await connectAgent(again.transport);
    expect([...agent.peers.keys()].sort()).toEqual([peer.tunnelId, other.tunnelId].sort());
    expect(await refusal(confirm(again, pending))).toEqual(agreementNotFound);
    expect(await refusal(startAgreement(again.wireguard, peer, used.epoch))).toEqual(epochUsed);
    expect(await outcomeOf(confirm(again, await startAgreement(again.wireguard, other)))).toBe("answer");
  });
});

describeOnSqlite("wireguard.WireguardService.WatchPeers", startIn, (start, shared) => {
  it("sends all peers first, then changes", async () => {
    const server = await start();
    const { peer } = await connectBoth(server);
    const agent = await connectAgent(server.transport);
    expect([...agent.peers.keys()]).toEqual([peer.tunnelId]);
    const added = await joinPeer(server.transport);
    await expect.poll(() => [...agent.peers.keys()]).toEqual([peer.tunnelId, added.tunnelId]);
    await server.vpn.disconnect({ tunnelId: peer.tunnelId });
    await expect.poll(() => [...agent.peers.keys()]).toEqual([added.tunnelId]);
    expect((await server.wireguard.listPeers({})).totalSize).toBe(1);
  });

  it("makes the newest agent the gateway, and ends the former one's stream", async () => {
    const server = await start();
    const { agent: former, peer } = await connectBoth(server);
    const { wireguardPublicKey } = former;
    const newest = await connectAgent(server.transport, { wireguardPublicKey });
    expect(await refusal(Promise.reject(await former.ended))).toEqual({
      code: "Aborted",
      reason: "GATEWAY_REPLACED",
    });
    await confirm(server, await startAgreement(server.wireguard, peer));
    expect([former.keys.length, newest.keys.length]).toEqual([0, 1]);
  });

  it("does not trust damaged records", async () => {
    const server = await start();
    const { peer } = await connectBoth(server);
    const intact = await joinPeer(server.transport);
    await server.tamper((db) =>
      db
        .updateTable("wireguard_peers")
        .set({ wireguard_key: random32() })
        .where("tunnel_id", "=", peer.tunnelId)
        .execute(),
    );
    const agent = await connectAgent(server.transport);
    expect([...agent.peers.keys()]).toEqual([intact.tunnelId]);
    expect(await outcomeOf(startAgreement(server.wireguard, peer))).toBe("RECORD_DAMAGED");
    const { peers } = await server.wireguard.listPeers({});
    expect(peers.map(({ damaged = false }) => damaged)).toEqual([true, false]);
  });

  it.each<[string, { endpoint?: string; wireguardPublicKey?: Uint8Array<ArrayBuffer> }]>([
    ["an endpoint without a port", { endpoint: "vpn.example.com" }],
    ["an endpoint with port 0", { endpoint: "vpn.example.com:0" }],
    ["an endpoint with port 65536", { endpoint: "vpn.example.com:65536" }],
    ["an endpoint with a path", { endpoint: "vpn.example.com:51820/x" }],
    ["an endpoint with a line break", { endpoint: "vpn.example.com:51820\nAllowedIPs=0.0.0.0/0" }],
    ["an IPv6 address without brackets", { endpoint: "2001:db8::1:51820" }],
    ["an empty endpoint", { endpoint: "" }],
    ["a WireGuard key of 31 bytes", { wireguardPublicKey: new Uint8Array(31).fill(1) }],
    ["a WireGuard key of zeros", { wireguardPublicKey: new Uint8Array(32) }],
  ])("refuses %s", async (_, invalid) => {
    const { wireguard } = await shared();
    const request = { wireguardPublicKey: random32(), endpoint: "vpn.example.com:51820", ...invalid };
    const first = wireguard.watchPeers(request)[Symbol.asyncIterator]();
    const refused = { code: "InvalidArgument", fields: Object.keys(invalid) };
    expect(await refusal(first.next())).toMatchObject(refused);
  });
});
