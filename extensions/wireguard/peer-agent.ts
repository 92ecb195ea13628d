/** The agent beside a peer's WireGuard interface: agrees on keys with the server, and sets them. */
import { wipe } from "../../src/crypto/bytes.ts";
import { type AgentDeps, createFailureLog, createKeeper, repeat } from "./agent.ts";
import { ManagedPeer, type PeerConfig } from "./managed-peer.ts";

/** Makes WireGuard renew an idle session within as many seconds, and keeps the path through NAT open. */
const keepaliveSeconds = 5;

export interface PeerAgentDeps extends AgentDeps {
  /** Agrees on a key with the server; 32 bytes, which then belong to the agent. */
  readonly agree: () => Promise<Uint8Array>;
}

/** The gateway as a peer of the interface. */
export type GatewayConfig = Required<Omit<PeerConfig, "keepaliveSeconds">>;

/** Runs until the signal, and leaves a random key, with which no session follows the last one. */
export async function runPeerAgent(
  deps: PeerAgentDeps,
  gateway: GatewayConfig,
  stop: AbortSignal,
): Promise<void> {
  const { wireguard, timing, log, agree } = deps;
  const keeper = createKeeper(wireguard);
  const peer = new ManagedPeer({ ...gateway, keepaliveSeconds }, deps);
  const [ofInterface, ofAgreement] = [
    createFailureLog(deps, `interface ${wireguard.name}`),
    createFailureLog(deps, "the agreement"),
  ];
  const agreeAndSet = async (): Promise<void> => {
    try {
      const presharedKey = await agree();
      if (stop.aborted) return wipe(presharedKey);
      await keeper.apply(() => peer.accept(presharedKey));
      log.info("agreed on a pre-shared key and set it");
      ofAgreement.worked();
    } catch (error) {
      peer.postpone();
      if (!stop.aborted) ofAgreement.failed(error);
    }
  };
  let running: Promise<void> | undefined;
  await repeat(timing.tickMs, stop, async () => {
    try {
      await keeper.reconcile((peers) => {
        const found = peers.find(({ publicKey }) => publicKey === gateway.publicKey);
        return [peer.observe(found)].filter((change) => change !== undefined);
      });
      ofInterface.worked();
    } catch (error) {
      ofInterface.failed(error);
      return;
    }
    if (!peer.isAgreementDue || running !== undefined) return;
    running = agreeAndSet().finally(() => {
      running = undefined;
    });
  });
  await keeper.apply(() => peer.randomize()).catch(ofInterface.failed);
}
