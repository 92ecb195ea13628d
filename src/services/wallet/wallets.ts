/** Creates wallets and signs with their keys. */
import { randomUUID } from "node:crypto";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type CreateWalletRequest, CreateWalletResponseSchema } from "#gen/wallet/wallet_service_pb.ts";
import { deriveAddress } from "../../crypto/address.ts";
import { withFreshKeyPair } from "../../crypto/fresh-key-pair.ts";
import { refuse } from "../../errors.ts";
import type { CallerInput } from "../../identity/principal.ts";
import { messageCodec } from "../../records/idempotency.ts";
import type { Principal } from "../../records/ownership.ts";
import { describeSealedKey } from "../../records/table-declaration.ts";
import { lendSecret, withSealedKey } from "../../secrets/sealed-keys.ts";
import type { ServiceDeps } from "../service-deps.ts";
import { type Wallet, type WalletStore, walletAlgorithm, walletQuota, walletTable } from "./tables.ts";

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
) {
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

/**
 * Signs a transaction with a wallet's key (FIPS 204, section 5.2, pure, empty context).
 *
 * @throws WALLET_NOT_FOUND, RECORD_DAMAGED
 */
export async function signTransaction(
  deps: WalletDeps,
  walletId: string,
  data: Uint8Array,
  principal: Principal,
): Promise<{ wallet: Wallet; signature: Uint8Array }> {
  const wallet = await deps.wallets.findIntact({ walletId }, { principal });
  if (wallet === undefined)
    throw refuse("WALLET_NOT_FOUND", `wallet ${walletId} does not exist`, { walletId });
  const key = describeSealedKey(walletTable, walletAlgorithm, wallet);
  const signature = await withSealedKey(deps, key, (secretKey) => deps.provider.sign(secretKey, data));
  return { wallet, signature };
}
