import { expect, it, onTestFinished, vi } from "vitest";
import { describeOnSqlite, type Shared } from "../../../test/services/app-under-test.ts";
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
const disconnected = { code: "Unavailable", reason: "GATEWAY_DISCONNECTED" };

/** Connects an agent that is the only gateway until the test ends, and a peer. */
async function connectBoth(server: WireguardServer, options?: AgentOptions) {
  const agent = await connectAgent(server.transport, options);
  const peer = await joinPeer(server.transport);
  const agree = (epoch?: number) => startAgreement(server.wireguard, peer, epoch);
  const register = (wireguardPublicKey: Uint8Array<ArrayBuffer>, tunnelId = peer.tunnelId) =>
    server.wireguard.registerKey({ tunnelId, wireguardPublicKey });
  return { ...server, server, agent, peer, tunnelId: peer.tunnelId, agree, register };
}

/** The same, with an agreement that the peer has started. */
async function agreeIn(shared: Shared<WireguardServer>, options?: AgentOptions) {
  const both = await connectBoth(await shared(), options);
  return { ...both, agreement: await both.agree() };
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
    const { server, wireguard, agent, peer, tunnelId, agree, register } = await connectBoth(await shared());
    await confirm(server, await agree(1000));
    const lastEpoch = async () => (await wireguard.getTunnel({ tunnelId, nonce: random32() })).lastEpoch;
    await register(peer.wireguardPublicKey);
    expect(await lastEpoch()).toBe(1000);
    const other = random32();
    await register(other);
    expect(await lastEpoch()).toBe(0);
    await expect.poll(() => hex(agent.peers.get(tunnelId)?.wireguardPublicKey)).toBe(hex(other));
  });

  it("refuses a tunnel whose key the server generated", async () => {
    const { vpn, register } = await connectBoth(await shared());
    const { tunnelId } = await vpn.registerPeer({});
    expect(await outcomeOf(register(random32(), tunnelId))).toBe("TUNNEL_KEY_SERVER_HELD");
  });

  it("refuses a key of another tunnel or of the gateway, but not of a disconnected tunnel", async () => {
    const { agent, peer: holder, transport, vpn, register } = await connectBoth(await shared());
    const { tunnelId } = await joinPeer(transport);
    const key = holder.wireguardPublicKey;
    expect(await outcomeOf(register(key, tunnelId))).toBe("WIREGUARD_KEY_TAKEN");
    expect(await outcomeOf(register(agent.wireguardPublicKey, tunnelId))).toBe("WIREGUARD_KEY_TAKEN");
    await vpn.disconnect({ tunnelId: holder.tunnelId });
    expect(await outcomeOf(register(key, tunnelId))).toBe("answer");
    await expect.poll(() => hex(agent.peers.get(tunnelId)?.wireguardPublicKey)).toBe(hex(key));
    expect(agent.peers.has(holder.tunnelId)).toBe(false);
  });

  it.each(invalidKeys)("refuses a WireGuard key: %s", async (_, wireguardPublicKey) => {
    const { register } = await connectBoth(await shared());
    const refused = { code: "InvalidArgument", fields: ["wireguardPublicKey"] };
    expect(await refusal(register(wireguardPublicKey))).toMatchObject(refused);
  });

  it("and all calls of peers fail while no agent is connected", async () => {
    const { server, wireguard, agent, peer, tunnelId, agree, register } = await connectBoth(await start());
    const agreement = await agree();
    agent.close();
    await expect.poll(async () => (await wireguard.listPeers({})).gatewayConnected).toBe(false);
    const calls = [
      register(peer.wireguardPublicKey),
      wireguard.getTunnel({ tunnelId, nonce: random32() }),
      agree(),
      confirm(server, agreement),
    ];
    expect(await outcomesOf(calls)).toEqual({ answered: 0, refusals: Array(4).fill(disconnected) });
  });
});

describeOnSqlite("wireguard.WireguardService.Agree and Confirm", startIn, (start, shared) => {
  it("give both sides one key, and store the epoch", async () => {
    const { server, agent, peer, agreement } = await agreeIn(shared);
    const { confirmation } = await confirm(server, agreement);
    expect(hex(confirmation)).toBe(hex(agreement.gatewayConfirmation));
    expect(lastKey(agent)).toBe(hex(agreement.presharedKey));
    const { tunnelId, epoch } = agreement;
    const { wireguardPublicKey } = peer;
    expect(agent.keys.at(-1)).toMatchObject({ tunnelId, epoch, wireguardPublicKey });
    await expect.poll(() => agent.awaited).toEqual([true]);
    const { peers } = await server.wireguard.listPeers({});
    expect(peers.find((one) => one.tunnelId === tunnelId)?.lastEpoch).toBe(epoch);
  });

  /** Makes an agreement; `agreeNext` starts the next one, a second later. */
  async function agreeOnce() {
    const skipSecond = controlAgreementClock();
    const { server, agree } = await connectBoth(await shared());
    const epoch = Date.now();
    await confirm(server, await agree(epoch));
    const agreeNext = (next: number) => {
      skipSecond();
      return outcomeOf(agree(next));
    };
    return { epoch, agreeNext };
  }

  it.each([
    ["the last one", 0, "EPOCH_USED"],
    ["one before it", -1, "EPOCH_USED"],
    ["the next one", 1, "answer"],
  ])("accept each epoch once: %s", async (_, distance, outcome) => {
    const { epoch, agreeNext } = await agreeOnce();
    expect(await agreeNext(epoch + distance)).toBe(outcome);
  });

  it.each([
    ["59 seconds", 59_000, "answer"],
    ["two minutes", 120_000, "EPOCH_IN_FUTURE"],
    ["a thousand years", 31_557_600_000_000, "EPOCH_IN_FUTURE"],
  ])("accept an epoch only if it is at most a minute ahead: %s", async (_, aheadMs, outcome) => {
    const { agree } = await connectBoth(await shared());
    expect(await outcomeOf(agree(Date.now() + aheadMs))).toBe(outcome);
  });

  it("accept the next epoch after the server's clock was set back", async () => {
    const { epoch, agreeNext } = await agreeOnce();
    vi.setSystemTime(epoch - 3_600_000);
    onTestFinished(() => void vi.useRealTimers());
    expect(await agreeNext(epoch + 1)).toBe("answer");
    expect(await agreeNext(epoch + 60_001)).toBe("EPOCH_IN_FUTURE");
  });

  it.each([0, 1.5, 2 ** 53, Number.NaN])("refuse the epoch %d", async (epoch) => {
    const { wireguard } = await shared();
    const request = { tunnelId: noSuchTunnel, epoch };
    const agree = { ...request, nonce: random32(), ephemeralPublicKey: makePeer().publicKey };
    const refused = { code: "InvalidArgument", fields: ["epoch"] };
    expect(await refusal(wireguard.agree(agree))).toMatchObject(refused);
    expect(await refusal(wireguard.confirm({ ...request, confirmation: random32() }))).toMatchObject(refused);
  });

  // The access table test refuses unknown tunnels.
  it("refuse tunnels without a WireGuard key", async () => {
    const { wireguard, vpn, transport } = await shared();
    await connectAgent(transport);
    const kem = makePeer();
    const { tunnelId } = await vpn.registerPeer({ publicKey: kem.publicKey });
    const agreeing = startAgreement(wireguard, { ...kem, tunnelId, wireguardPublicKey: random32() });
    for (const call of [agreeing, wireguard.getTunnel({ tunnelId, nonce: random32() })])
      expect(await outcomeOf(call)).toBe("WIREGUARD_KEY_MISSING");
  });

  it("refuse an ephemeral key that ML-KEM-1024 forbids, without counting it", async () => {
    const { wireguard, tunnelId, agree } = await connectBoth(await shared());
    // FIPS 203, section 7.2: every coefficient must be below 3329.
    const ephemeralPublicKey = new Uint8Array(1568).fill(0xff);
    const request = { tunnelId, epoch: Date.now(), nonce: random32(), ephemeralPublicKey };
    expect(await refusal(wireguard.agree(request))).toMatchObject({
      reason: "KEY_INVALID",
      fields: ["ephemeralPublicKey"],
    });
    expect(await outcomeOf(agree())).toBe("answer");
  });

  it("start one agreement a second for each tunnel, even concurrently", async () => {
    const skipSecond = controlAgreementClock();
    const { wireguard, transport, peer, agree } = await connectBoth(await shared());
    const other = await joinPeer(transport);
    const epoch = Date.now();
    const calls = [peer, peer, peer, other].map((one) => startAgreement(wireguard, one, epoch));
    const tooSoon = { code: "ResourceExhausted", reason: "AGREEMENT_TOO_SOON" };
    expect(await outcomesOf(calls)).toEqual({ answered: 2, refusals: [tooSoon, tooSoon] });
    skipSecond();
    expect(await outcomeOf(agree(epoch))).toBe("answer");
  });

  it("give an agreement one attempt: a wrong confirmation ends it", async () => {
    const { server, agent, agreement } = await agreeIn(shared);
    const wrong = { ...agreement, peerConfirmation: flipBit(agreement.peerConfirmation) };
    expect(await outcomeOf(confirm(server, wrong))).toBe("CONFIRMATION_INVALID");
    expect(await outcomeOf(confirm(server, agreement))).toBe("AGREEMENT_NOT_FOUND");
    expect(agent.keys).toEqual([]);
  });

  it("refuse a recorded confirmation, before and after the next agreement", async () => {
    const skipSecond = controlAgreementClock();
    const { server, agent, agree, agreement: recorded } = await agreeIn(shared);
    await confirm(server, recorded);
    expect(await outcomeOf(confirm(server, recorded))).toBe("AGREEMENT_NOT_FOUND");
    skipSecond();
    const { epoch } = await agree(recorded.epoch + 1);
    expect(await outcomeOf(confirm(server, recorded))).toBe("AGREEMENT_NOT_FOUND");
    expect(await outcomeOf(confirm(server, { ...recorded, epoch }))).toBe("CONFIRMATION_INVALID");
    expect(agent.keys).toHaveLength(1);
  });

  it("end with the WireGuard key for which they were made", async () => {
    const { server, agent, register, agreement } = await agreeIn(shared);
    await register(random32());
    expect(await outcomeOf(confirm(server, agreement))).toBe("AGREEMENT_NOT_FOUND");
    expect(agent.keys).toEqual([]);
  });

  it("end with their tunnel", async () => {
    const { server, agent, peer, tunnelId, agree, agreement } = await agreeIn(shared);
    await server.vpn.disconnect({ tunnelId });
    expect(await outcomeOf(confirm(server, agreement))).toBe("TUNNEL_NOT_FOUND");
    expect(await outcomeOf(agree())).toBe("TUNNEL_NOT_FOUND");
    await expect.poll(() => agent.removed).toContain(hex(peer.wireguardPublicKey));
    expect(agent.keys).toEqual([]);
  });

  it("end with the gateway's WireGuard key, but not with its agent's connection", async () => {
    const { server, transport, agent, agreement } = await agreeIn(shared);
    const again = await connectAgent(transport, { wireguardPublicKey: agent.wireguardPublicKey });
    expect(await outcomeOf(confirm(server, agreement))).toBe("answer");
    expect(lastKey(again)).toBe(hex(agreement.presharedKey));
    const other = await startAgreement(server.wireguard, await joinPeer(transport));
    const replaced = await connectAgent(transport);
    expect(await refusal(confirm(server, other))).toEqual(disconnected);
    expect(replaced.keys).toEqual([]);
  });

  it("fail if the agent could not set the key; the epoch is used", async () => {
    const skipSecond = controlAgreementClock();
    const { server, agree, agreement } = await agreeIn(shared, { apply: () => false });
    expect(await outcomeOf(confirm(server, agreement))).toBe("KEY_NOT_SET");
    skipSecond();
    expect(await outcomeOf(agree(agreement.epoch))).toBe("EPOCH_USED");
  });

  it("notify the agent that a peer no longer waits for its report", async () => {
    const { wireguard, agent, agreement } = await agreeIn(shared, { apply: () => undefined });
    const { tunnelId, epoch, peerConfirmation: confirmation } = agreement;
    const leaving = new AbortController();
    const left = refusal(wireguard.confirm({ tunnelId, epoch, confirmation }, { signal: leaving.signal }));
    await expect.poll(() => agent.keys.length).toBe(1);
    leaving.abort();
    expect((await left).code).toBe("Canceled");
    const report = { tunnelId, epoch, applied: true };
    await expect.poll(async () => (await wireguard.reportKey(report)).awaited).toBe(false);
  });

  it("replace a key that the agent has not reported", async () => {
    const skipSecond = controlAgreementClock();
    let isSlow = true;
    const apply = () => (isSlow ? undefined : true);
    const { server, agent, agree } = await connectBoth(await shared(), { apply });
    const first = outcomeOf(confirm(server, await agree(1000)));
    await expect.poll(() => agent.keys.length).toBe(1);
    skipSecond();
    isSlow = false;
    const second = await agree(1001);
    expect(await outcomeOf(confirm(server, second))).toBe("answer");
    expect(await first).toBe("EPOCH_USED");
    expect(lastKey(agent)).toBe(hex(second.presharedKey));
  });

  it("survive a restart of the server: epochs stay used, pending agreements end", async () => {
    const { server, peer, transport, wireguard, agree } = await connectBoth(await start());
    const used = await agree();
    await confirm(server, used);
    const other = await joinPeer(transport);
    const pending = await startAgreement(wireguard, other);
    await server.close();
    const again = await start(server.database);
    const agent = await connectAgent(again.transport);
    expect([...agent.peers.keys()].sort()).toEqual([peer.tunnelId, other.tunnelId].sort());
    expect(await outcomeOf(confirm(again, pending))).toBe("AGREEMENT_NOT_FOUND");
    expect(await outcomeOf(startAgreement(again.wireguard, peer, used.epoch))).toBe("EPOCH_USED");
    expect(await outcomeOf(confirm(again, await startAgreement(again.wireguard, other)))).toBe("answer");
  });
});

describeOnSqlite("wireguard.WireguardService.WatchPeers", startIn, (start, shared) => {
  it("sends all peers first, then changes", async () => {
    const { wireguard, vpn, transport, tunnelId } = await connectBoth(await start());
    const agent = await connectAgent(transport);
    expect([...agent.peers.keys()]).toEqual([tunnelId]);
    const added = await joinPeer(transport);
    await expect.poll(() => [...agent.peers.keys()]).toEqual([tunnelId, added.tunnelId]);
    await vpn.disconnect({ tunnelId });
    await expect.poll(() => [...agent.peers.keys()]).toEqual([added.tunnelId]);
    expect((await wireguard.listPeers({})).totalSize).toBe(1);
  });

  it("makes the newest agent the gateway, and ends the former one's stream", async () => {
    const { server, transport, agent: former, agree } = await connectBoth(await start());
    const newest = await connectAgent(transport, { wireguardPublicKey: former.wireguardPublicKey });
    const ended = { code: "Aborted", reason: "GATEWAY_REPLACED" };
    expect(await refusal(Promise.reject(await former.ended))).toEqual(ended);
    await confirm(server, await agree());
    expect([former.keys.length, newest.keys.length]).toEqual([0, 1]);
  });

  it("does not trust damaged records", async () => {
    const { wireguard, transport, tunnelId, tamper, agree } = await connectBoth(await start());
    const intact = await joinPeer(transport);
    const change = { wireguard_key: random32() };
    await tamper((db) =>
      db.updateTable("wireguard_peers").set(change).where("tunnel_id", "=", tunnelId).execute(),
    );
    const agent = await connectAgent(transport);
    expect([...agent.peers.keys()]).toEqual([intact.tunnelId]);
    expect(await outcomeOf(agree())).toBe("RECORD_DAMAGED");
    const { peers } = await wireguard.listPeers({});
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
