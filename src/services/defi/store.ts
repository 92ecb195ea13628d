/** Stores wallets: their thresholds and their signers. */
import type { RecordOf } from "../../records/columns.ts";
import { countForOwner } from "../../records/list-counts.ts";
import type { Principal } from "../../records/ownership.ts";
import { openTable } from "../../records/record-table.ts";
import type { Store } from "../../store/store.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import { createProposalStore } from "./proposal-store.ts";
import { signerQuota, signerTable, walletTable } from "./tables.ts";

/** The algorithm of all signers. */
export const signerAlgorithm = "ML-DSA-65";

/** A wallet that several signers govern. */
export type MultisigWallet = RecordOf<typeof walletTable.columns>;

/** A signer of a wallet. */
export type Signer = RecordOf<typeof signerTable.columns>;

/** The wallets and proposals of the service. */
export type DefiStore = ReturnType<typeof createDefiStore>;

/** Creates the service's store on top of the shared store. */
export function createDefiStore(store: Store) {
  const wallets = openTable(store, walletTable);
  const signers = openTable(store, signerTable);
  return {
    ...createProposalStore(store),
    wallets,
    /** @throws RecordDamagedError */
    findWallet: (walletId: string, principal: Principal) => wallets.findIntact({ walletId }, { principal }),
    /** @throws RecordDamagedError */
    findSigner: (walletId: string, address: string) => signers.findIntact({ walletId, address }),
    insertSigner: signers.insert,
    /** Stores a wallet, within a transaction. @throws QuotaExceededError */
    async insertWallet(transaction: WriteTransaction, wallet: MultisigWallet): Promise<void> {
      const { length } = wallet.signers;
      await transaction.requireRoom(signerQuota, wallet.owner, length);
      await wallets.insert(transaction, wallet);
      await countForOwner(transaction.db, signerQuota, wallet.owner, length);
    },
  };
}
