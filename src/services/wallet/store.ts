/** The store of the wallet service: wallets with their sealed secret keys. */
import type { RecordOf } from "../../records/columns.ts";
import { openTable } from "../../records/record-table.ts";
import { describeSealedKey } from "../../records/table-declaration.ts";
import type { SealedKey } from "../../secrets/sealed-keys.ts";
import type { Store } from "../../store/store.ts";
import { walletTable } from "./tables.ts";

/** The algorithm of all wallets. */
export const walletAlgorithm = "ML-DSA-65";

/** A wallet without its secret key. */
export type Wallet = RecordOf<typeof walletTable.columns>;

/** Names a wallet's sealed secret key. */
export function nameSealedKey(wallet: Wallet): SealedKey {
  return describeSealedKey(walletTable, walletAlgorithm, wallet);
}

/** The wallets of the service. */
export type WalletStore = ReturnType<typeof createWalletStore>;

/** Creates the service's store on top of the shared store. */
export function createWalletStore(store: Store) {
  return openTable(store, walletTable);
}
