import { randomUUID } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type CreateWalletRequest, CreateWalletResponseSchema } from "#gen/wallet/wallet_service_pb.ts";
import { deriveAddress } from "../../crypto/address.ts";
import { withFreshKeyPair } from "../../crypto/fresh-key-pair.ts";
import type { CallerInput } from "../../identity/principal.ts";
import { messageCodec } from "../../records/idempotency.ts";
import { lendSecret } from "../../secrets/sealed-keys.ts";
import type { ServiceDeps } from "../service-deps.ts";
import { type Wallet, type WalletStore, walletAlgorithm, walletQuota } from "./tables.ts";

export interface WalletDeps extends ServiceDeps {
  readonly wallets: WalletStore;
}

/**
 * Creates a wallet and stores its sealed secret key.
 *
 * @throws IDEMPOTENCY_KEY_REUSED, QUOTA_EXCEEDED
 */
export function createWallet(
  { provider, store, wallets, now }: WalletDeps,
  { label }: CreateWalletRequest,
  { owner, idempotentCall }: CallerInput,
): Promise<MessageInitShape<typeof CreateWalletResponseSchema>> {
  return store.runIdempotent(idempotentCall, messageCodec(CreateWalletResponseSchema), async (write) => {
    await store.requireRoom(walletQuota, owner);
    return withFreshKeyPair(provider, walletAlgorithm, ({ publicKey: key, secretKey }) => {
      const publicKey = key.exportRaw();
      const wallet: Wallet = {
        walletId: `wallet-${randomUUID()}`,
        label,
        address: deriveAddress(publicKey),
        publicKey,
        owner,
        createdAt: now(),
      };
      return lendSecret(secretKey, (secret) =>
        write(async (transaction) => {
          await wallets.insert(transaction, wallet, secret);
          const { walletId, address, createdAt } = wallet;
          const algorithm = walletAlgorithm;
          const shown = { walletId, address, publicKey, algorithm, label, publicKeyPem: key.toPem() };
          return { ...shown, createdAt: timestampFromDate(createdAt) };
        }),
      );
    });
  });
}
