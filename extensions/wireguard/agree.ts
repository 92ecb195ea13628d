/** Both halves of an agreement: the gateway's answer, and the peer's confirmation. */
import { timingSafeEqual } from "node:crypto";
import type { AgreeRequest, ConfirmRequest } from "#gen/wireguard/wireguard_service_pb.ts";
import { equalBytes, wipe } from "../../src/crypto/bytes.ts";
import type { Encapsulation } from "../../src/crypto/provider.ts";
import { refuse } from "../../src/errors.ts";
import type { Principal } from "../../src/records/ownership.ts";
import { intact } from "../../src/records/table-declaration.ts";
import { readField } from "../../src/services/fields.ts";
import { requireTunnel } from "../../src/services/vpn/register-peer.ts";
import { kemAlgorithm } from "../../src/services/vpn/store.ts";
import type { WriteTransaction } from "../../src/store/write-transaction.ts";
import { agreementContext, buildTranscript, deriveKeys } from "./agreement.ts";
import { agreementNotFound, type PendingAgreement, wipeAgreement } from "./agreements.ts";
import { requirePeer, type WireguardDeps } from "./deps.ts";
import { epochUsed, gatewayDisconnected } from "./gateway.ts";
import { reasons } from "./reasons.ts";
import type { PeerRecord } from "./store.ts";

/** How far an epoch may be ahead of the server's clock, or of the last epoch if that clock was set back. */
const maxAheadMs = 60_000;

/** The caller, and when the call must end. */
export interface Caller {
  readonly principal: Principal;
  readonly signal: AbortSignal;
}

/**
 * Makes the gateway's half of an agreement, which then waits for its confirmation.
 *
 * @throws TUNNEL_NOT_FOUND, WIREGUARD_KEY_MISSING, KEY_INVALID, EPOCH_USED, EPOCH_IN_FUTURE, AGREEMENT_TOO_SOON,
 *   GATEWAY_DISCONNECTED
 */
export async function agree(
  deps: WireguardDeps,
  { tunnelId, epoch, nonce, ephemeralPublicKey }: AgreeRequest,
  { principal, signal }: Caller,
) {
  const { provider, gateway, agreements, identityKey } = deps;
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
  if (epoch <= Math.max(serverTimeMs, lastEpoch) + maxAheadMs) return;
  throw refuse(
    reasons.epochInFuture,
    `epoch ${epoch} is more than ${maxAheadMs / 1000} seconds ahead of the server's time, ${serverTimeMs}; use the time of GetTunnel, or its last epoch + 1 if that is later`,
    { tunnelId, serverTimeMs: String(serverTimeMs) },
  );
}

/**
 * Finishes an agreement: stores its epoch, and has the gateway's agent set the key.
 *
 * The epoch is stored first. A failure after that costs the peer an epoch; a key for an epoch that is not stored could
 * be agreed on twice.
 *
 * @returns the gateway's confirmation, 32 bytes
 * @throws TUNNEL_NOT_FOUND, AGREEMENT_NOT_FOUND, CONFIRMATION_INVALID, EPOCH_USED, GATEWAY_DISCONNECTED, GATEWAY_SILENT,
 *   KEY_NOT_SET
 */
export async function confirm(
  deps: WireguardDeps,
  request: ConfirmRequest,
  { principal, signal }: Caller,
): Promise<Uint8Array> {
  const { store, gateway, agreements } = deps;
  const { tunnelId, epoch, confirmation } = request;
  await requireTunnel(deps, tunnelId, principal);
  const pending = agreements.take(tunnelId, epoch);
  try {
    const { wireguardKey, gatewayWireguardKey, keys } = pending;
    if (!timingSafeEqual(keys.peerConfirmation, confirmation))
      throw refuse(
        reasons.confirmationInvalid,
        `the confirmation does not match the agreement of tunnel ${tunnelId}, which has ended; agree again`,
        { tunnelId },
      );
    if (!gateway.hasKey(gatewayWireguardKey)) throw gatewayDisconnected();
    signal.throwIfAborted();
    await store.write((transaction) => putEpoch(deps, transaction, principal, request, pending));
    const key = { tunnelId, wireguardKey, epoch, presharedKey: keys.presharedKey };
    await gateway.deliver(key, gatewayWireguardKey, signal);
    return Uint8Array.from(keys.gatewayConfirmation);
  } finally {
    wipeAgreement(pending);
  }
}

/** @throws TUNNEL_NOT_FOUND, AGREEMENT_NOT_FOUND, EPOCH_USED */
async function putEpoch(
  deps: WireguardDeps,
  transaction: WriteTransaction,
  principal: Principal,
  { tunnelId, epoch }: ConfirmRequest,
  { wireguardKey }: PendingAgreement,
): Promise<void> {
  await requireTunnel(deps, tunnelId, principal, transaction);
  const peer = await deps.peers.find(tunnelId, transaction);
  // The peer has registered another WireGuard key since.
  if (peer === undefined || !equalBytes(peer.wireguardKey, wireguardKey))
    throw agreementNotFound(tunnelId, epoch);
  if (epoch <= peer.lastEpoch) throw epochUsed(tunnelId, peer.lastEpoch);
  await deps.peers.update(transaction, intact(peer), { lastEpoch: epoch });
}
