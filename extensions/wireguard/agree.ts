import { wipe } from "../../src/crypto/bytes.ts";
import type { Encapsulation } from "../../src/crypto/provider.ts";
import { refuse } from "../../src/errors.ts";
import type { Principal } from "../../src/records/ownership.ts";
import { readField } from "../../src/services/fields.ts";
import { kemAlgorithm } from "../../src/services/vpn/store.ts";
import { agreementContext, buildTranscript, deriveKeys } from "./agreement.ts";
import { requirePeer, type WireguardDeps } from "./deps.ts";
import { epochUsed } from "./gateway.ts";
import { reasons } from "./reasons.ts";
import type { PeerRecord } from "./store.ts";

/** How far the peer's clock may be ahead. A higher epoch would lock the peer out until then. */
const maxAheadMs = 60_000;

export interface AgreeInput {
  readonly tunnelId: string;
  readonly epoch: number;
  /** 32 bytes. */
  readonly nonce: Uint8Array;
  /** 1568 bytes. */
  readonly ephemeralPublicKey: Uint8Array;
  readonly principal: Principal;
  readonly signal: AbortSignal;
}

/**
 * Makes the gateway's half of an agreement, which then waits for its confirmation.
 *
 * @throws TUNNEL_NOT_FOUND, WIREGUARD_KEY_MISSING, KEY_INVALID, EPOCH_USED, EPOCH_IN_FUTURE, AGREEMENT_TOO_SOON,
 *   GATEWAY_DISCONNECTED
 */
export async function agree(deps: WireguardDeps, input: AgreeInput) {
  const { provider, gateway, agreements, identityKey } = deps;
  const { tunnelId, epoch, nonce, ephemeralPublicKey, principal, signal } = input;
  const { tunnel, peer } = await requirePeer(deps, tunnelId, principal);
  const { wireguardKey: gatewayWireguardKey } = gateway.require();
  requireEpoch(deps, peer, epoch);
  const ephemeralKey = readField(
    "ephemeralPublicKey",
    () => provider.importPublicKey(kemAlgorithm, { raw: ephemeralPublicKey }),
    "KEY_INVALID",
  );
  const registeredKey = provider.importPublicKey(kemAlgorithm, { raw: tunnel.publicKey });
  const makeAvailable = agreements.start(tunnelId);
  const made: Encapsulation[] = [];
  try {
    const ephemeral = await provider.encapsulate(ephemeralKey);
    made.push(ephemeral);
    const registered = await provider.encapsulate(registeredKey);
    made.push(registered);
    const ciphertexts = {
      ephemeralCiphertext: ephemeral.ciphertext,
      registeredCiphertext: registered.ciphertext,
    };
    const transcript = buildTranscript({
      ...{ tunnelId, epoch, nonce, ephemeralPublicKey, ...ciphertexts },
      ...{ gatewayWireguardKey, peerWireguardKey: peer.wireguardKey, registeredPublicKey: tunnel.publicKey },
    });
    const signature = await provider.sign(identityKey, transcript, { context: agreementContext });
    signal.throwIfAborted();
    const keys = deriveKeys(transcript, ephemeral.sharedSecret, registered.sharedSecret);
    makeAvailable({ epoch, wireguardKey: peer.wireguardKey, gatewayWireguardKey, keys });
    return { ...ciphertexts, gatewayWireguardPublicKey: gatewayWireguardKey, signature };
  } finally {
    wipe(...made.map(({ sharedSecret }) => sharedSecret));
  }
}

/** @throws EPOCH_USED, EPOCH_IN_FUTURE */
function requireEpoch({ now }: WireguardDeps, { tunnelId, lastEpoch }: PeerRecord, epoch: number): void {
  if (epoch <= lastEpoch) throw epochUsed(tunnelId, lastEpoch);
  const serverTimeMs = now().getTime();
  if (epoch <= serverTimeMs + maxAheadMs) return;
  throw refuse(
    reasons.epochInFuture,
    `epoch ${epoch} is more than ${maxAheadMs / 1000} seconds ahead of the server's time, ${serverTimeMs}; use the time of GetTunnel`,
    { tunnelId, serverTimeMs: String(serverTimeMs) },
  );
}
