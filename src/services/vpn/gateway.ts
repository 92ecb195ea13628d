/** The gateway: its own keys, and its sessions. */
import type { CryptoProvider, SecretKey } from "../../crypto/provider.ts";
import { poll } from "../../database/poll.ts";
import { openSealedKey } from "../../secrets/sealed-keys.ts";
import { createServiceSecrets } from "../../secrets/service-secrets.ts";
import type { Store } from "../../store/store.ts";
import { createReplayMemory } from "./replay-window.ts";
import type { Session } from "./session.ts";
import { identityAlgorithm, kemAlgorithm, type Tunnel, type VpnStore } from "./store.ts";
import { gatewaySecrets, identitySecret, kemSecret } from "./tables.ts";

/** State of a tunnel in this server's memory. */
export interface LiveTunnel {
  readonly owner: string;
  session: Session;
  packetCount: number;
  byteCount: number;
  rekeyCount: number;
}

export type Gateway = Awaited<ReturnType<typeof openGateway>>;

/** Binds the signature over the gateway's encapsulation key to that use. */
const kemKeyContext = new TextEncoder().encode("quantum-safe-playground vpn kem key");

/** Interval of polls for tunnels that were disconnected through another server. */
const pollIntervalMs = 1000;

/**
 * Opens the key that signs for the gateway, or creates the gateway's keys in a new store. The caller erases it. Whoever
 * signs other texts with it needs a context (FIPS 204) that no other text has: handshakes are signed without one.
 *
 * @throws RecordDamagedError if it was changed or is missing: peers may have stored its public key
 */
export async function openGatewayIdentity(store: Store, provider: CryptoProvider): Promise<SecretKey> {
  await createServiceSecrets(store, gatewaySecrets);
  return openSealedKey(store, provider, { ...identitySecret, algorithm: identityAlgorithm });
}

/**
 * Opens the gateway's keys, or creates them in a new store.
 *
 * @throws RecordDamagedError
 */
export async function openGateway(
  store: Store,
  provider: CryptoProvider,
  tunnels: Pick<VpnStore, "findMissing">,
) {
  const identityKey = await openGatewayIdentity(store, provider);
  const kemKey = await openSealedKey(store, provider, { ...kemSecret, algorithm: kemAlgorithm });
  const kemKeySignature = await provider.sign(identityKey, kemKey.publicKey.exportRaw(), {
    context: kemKeyContext,
  });
  const live = new Map<string, LiveTunnel>();
  const memory = createReplayMemory();
  const end = (session: Session): void => {
    memory.remove(session.received);
    session.close();
  };
  /** Overwrites a tunnel's session key and removes its session. */
  const forget = (tunnelId: string): void => {
    const tunnel = live.get(tunnelId);
    if (tunnel !== undefined) end(tunnel.session);
    live.delete(tunnelId);
  };
  const { background } = store;
  const stopPolling = poll({ work: "vpn_end_tunnels", everyMs: pollIntervalMs, background }, async () => {
    if (live.size === 0) return;
    for (const tunnelId of await tunnels.findMissing([...live.keys()])) forget(tunnelId);
  });
  return {
    /** ML-KEM-1024. */
    kemKey,
    /** ML-DSA-65. */
    identityKey,
    /** Identity key's signature over the raw public half of `kemKey`. */
    kemKeySignature,
    /** Tunnels with a session on this server, by tunnelId. */
    live,
    /**
     * Gives a tunnel a new session and overwrites the previous key.
     *
     * @param isRekey counts a rekey
     */
    establish(
      { tunnelId, owner }: Pick<Tunnel, "tunnelId" | "owner">,
      session: Session,
      isRekey: boolean,
    ): LiveTunnel {
      const before = live.get(tunnelId);
      if (before !== undefined) end(before.session);
      memory.add(session.received, owner);
      const tunnel = {
        owner,
        session,
        packetCount: before?.packetCount ?? 0,
        byteCount: before?.byteCount ?? 0,
        rekeyCount: (before?.rekeyCount ?? 0) + (isRekey ? 1 : 0),
      };
      live.set(tunnelId, tunnel);
      return tunnel;
    },
    forget,
    /** Overwrites all keys, and waits for the poll in progress, which reads the store. */
    async close(): Promise<void> {
      const stopped = stopPolling();
      for (const tunnelId of [...live.keys()]) forget(tunnelId);
      kemKey.erase();
      identityKey.erase();
      await stopped;
    },
  };
}
