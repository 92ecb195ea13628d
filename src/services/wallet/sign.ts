import { refuse } from "../../errors.ts";
import type { Principal } from "../../records/ownership.ts";
import { describeSealedKey } from "../../records/table-declaration.ts";
import { withSealedKey } from "../../secrets/sealed-keys.ts";
import type { WalletDeps } from "./create.ts";
import { type Wallet, walletAlgorithm, walletTable } from "./tables.ts";

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
