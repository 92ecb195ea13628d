import { randomUUID } from "node:crypto";
import { type RegisterPeerRequest, RegisterPeerResponseSchema } from "#gen/vpn/vpn_service_pb.ts";
import { refuse } from "../../errors.ts";
import type { CallerInput } from "../../identity/principal.ts";
import { messageCodec } from "../../records/idempotency.ts";
import type { Principal } from "../../records/ownership.ts";
import { lendSecretOf } from "../../secrets/sealed-keys.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import { readGivenKey, withGivenOrFreshKey } from "../fields.ts";
import type { ServiceDeps } from "../service-deps.ts";
import type { Gateway } from "./gateway.ts";
import { formatAddress, kemAlgorithm, type Tunnel, type VpnStore } from "./store.ts";
import { tunnelQuota } from "./tables.ts";

export interface VpnDeps extends ServiceDeps {
  readonly tunnels: VpnStore;
  readonly gateway: Gateway;
}

/**
 * Registers a peer and assigns it an address.
 *
 * @throws KEY_INVALID, ADDRESS_POOL_EMPTY, IDEMPOTENCY_KEY_REUSED, QUOTA_EXCEEDED
 */
export function registerPeer(
  { provider, store, tunnels, now }: VpnDeps,
  req: RegisterPeerRequest,
  { owner, idempotentCall }: CallerInput,
) {
  const given = readGivenKey(provider, kemAlgorithm, req, "publicKey");
  return store.runIdempotent(idempotentCall, messageCodec(RegisterPeerResponseSchema), async (write) => {
    await store.requireRoom(tunnelQuota, owner);
    return withGivenOrFreshKey(provider, kemAlgorithm, given, (publicKey, secretKey) => {
      const privateKey = secretKey?.exportRaw();
      return lendSecretOf(secretKey, (secret) =>
        write(async (transaction) => {
          const addressNumber = await tunnels.findFreeAddress(transaction);
          if (addressNumber === undefined)
            throw refuse("ADDRESS_POOL_EMPTY", "no address is left; disconnect unused tunnels");
          const tunnel: Tunnel = {
            tunnelId: `tunnel-${randomUUID()}`,
            peerName: req.peerName,
            addressNumber,
            publicKey: publicKey.exportRaw(),
            isServerHeld: secretKey !== undefined,
            owner,
            createdAt: now(),
          };
          await tunnels.insert(transaction, tunnel, secret);
          return {
            tunnelId: tunnel.tunnelId,
            assignedIp: formatAddress(tunnel),
            publicKey: tunnel.publicKey,
            publicKeyPem: publicKey.toPem(),
            ...(privateKey && { privateKey }),
            // A copy, because the seed is wiped before the response is written.
            ...(secret && { privateKeySeed: Uint8Array.from(secret) }),
          };
        }),
      );
    });
  });
}

/**
 * @param transaction in which to read; if omitted, reads what is committed
 * @throws TUNNEL_NOT_FOUND, even for a tunnel that exists but belongs to another user
 */
export async function requireTunnel(
  { tunnels }: Pick<VpnDeps, "tunnels">,
  tunnelId: string,
  principal: Principal,
  transaction?: Pick<WriteTransaction, "db">,
): Promise<Tunnel> {
  const tunnel = await tunnels.find(tunnelId, principal, transaction);
  if (tunnel !== undefined) return tunnel;
  throw tunnelNotFound(tunnelId);
}

export function tunnelNotFound(tunnelId: string): Error {
  return refuse("TUNNEL_NOT_FOUND", `tunnel ${tunnelId} does not exist`, { tunnelId });
}
