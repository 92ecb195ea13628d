import { timingSafeEqual } from "node:crypto";
import { equalBytes } from "../../src/crypto/bytes.ts";
import { refuse } from "../../src/errors.ts";
import type { Principal } from "../../src/records/ownership.ts";
import { intact } from "../../src/records/table-declaration.ts";
import { requireTunnel } from "../../src/services/vpn/register-peer.ts";
import type { WriteTransaction } from "../../src/store/write-transaction.ts";
import { agreementNotFound, type PendingAgreement, wipeAgreement } from "./agreements.ts";
import type { WireguardDeps } from "./deps.ts";
import { epochUsed, gatewayDisconnected } from "./gateway.ts";
import { reasons } from "./reasons.ts";

export interface ConfirmInput {
  readonly tunnelId: string;
  readonly epoch: number;
  /** 32 bytes. */
  readonly confirmation: Uint8Array;
  readonly principal: Principal;
  readonly signal: AbortSignal;
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
export async function confirm(deps: WireguardDeps, input: ConfirmInput): Promise<Uint8Array> {
  const { store, gateway, agreements } = deps;
  const { tunnelId, epoch, confirmation, principal, signal } = input;
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
    await store.write((transaction) => putEpoch(deps, transaction, input, pending));
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
  { tunnelId, epoch, principal }: ConfirmInput,
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
