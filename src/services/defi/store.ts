/** What the governance service keeps of wallets: their thresholds, and their signers. */
import { column, type ListedRow, type RecordOf, type TaggedRow } from "../../records/columns.ts";
import { changeCounts } from "../../records/list-counts.ts";
import { listSeenBy, type Principal } from "../../records/ownership.ts";
import { recordQuota } from "../../records/quota.ts";
import { openTable } from "../../records/record-table.ts";
import { describeSealedKey, type TableDeclaration } from "../../records/table-declaration.ts";
import type { SealedKey } from "../../secrets/sealed-keys.ts";
import type { Store, WriteTransaction } from "../../store/store.ts";
import { createProposalStore } from "./proposal-store.ts";

/** The algorithm of all signers. */
export const signerAlgorithm = "ML-DSA-65";

const walletColumns = {
  walletId: column.text("wallet_id"),
  threshold: column.int32("threshold"),
  /** Addresses. */
  signers: column.jsonList("signers"),
  /** Who made it. */
  owner: column.text("owner"),
  createdAt: column.time("created_at_ms"),
};

/** A wallet that several signers govern. */
export type MultisigWallet = RecordOf<typeof walletColumns>;

const signerColumns = {
  walletId: column.text("wallet_id"),
  address: column.text("address"),
  /** Raw. */
  publicKey: column.bytes("public_key"),
  /** Whether the service keeps the secret key; else the signer does. */
  isServerHeld: column.flag("is_server_held"),
};

/** A signer of a wallet. */
export type Signer = RecordOf<typeof signerColumns>;

declare module "../../database/schema.ts" {
  interface Schema {
    defi_wallets: ListedRow<typeof walletColumns>;
    defi_signers: TaggedRow<typeof signerColumns>;
  }
}

/** Names the list of all wallets, for page tokens and counts. */
export const walletList = "defi_wallets";
/** Counts the signers of an owner's wallets. Wallets have at least one signer each. */
export const signerQuota = recordQuota("defi_signers", "signers of wallets");

const walletTable: TableDeclaration<typeof walletColumns> = {
  name: walletList,
  columns: walletColumns,
  key: ["walletId"],
  owner: "owner",
  describe: ({ walletId }) => `wallet ${walletId}`,
};

const signerTable: TableDeclaration<typeof signerColumns> = {
  name: "defi_signers",
  columns: signerColumns,
  key: ["walletId", "address"],
  orderedBy: "address",
  describe: ({ walletId, address }) => `signer ${address} of wallet ${walletId}`,
};

/** Names a signer's sealed secret key. */
export function nameSealedKey(signer: Signer): SealedKey {
  return describeSealedKey(signerTable, signerAlgorithm, signer);
}

/** The wallets and proposals of the service. */
export type DefiStore = ReturnType<typeof createDefiStore>;

/** Makes the store of the service on the store of all. */
export function createDefiStore(store: Store) {
  const wallets = openTable(store, walletTable);
  const signers = openTable(store, signerTable);
  return {
    ...createProposalStore(store),
    /** @throws RecordDamagedError */
    findWallet: (walletId: string, principal: Principal) => wallets.findIntact({ walletId }, { principal }),
    /** @throws RecordDamagedError */
    findSigner: (walletId: string, address: string) => signers.findIntact({ walletId, address }),
    listWallets: wallets.list,
    countWallets: wallets.count,
    insertSigner: signers.insert,
    /** Keeps a wallet, within a transaction. @throws QuotaExceededError */
    async insertWallet(transaction: WriteTransaction, wallet: MultisigWallet): Promise<void> {
      const { length } = wallet.signers;
      await transaction.requireRoom(signerQuota, wallet.owner, length);
      await wallets.insert(transaction, wallet);
      await changeCounts(transaction.db, [listSeenBy(wallet, signerQuota.list)], length);
    },
  };
}
