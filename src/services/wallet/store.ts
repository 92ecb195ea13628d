/** What the wallet service keeps: wallets, their secret keys sealed. */
import {
  bytes,
  type PositionColumn,
  type RecordOf,
  type RowOf,
  type TagColumn,
  text,
  time,
} from "../../records/columns.ts";
import { type Principal, seenBy } from "../../records/ownership.ts";
import type { Page, PageRequest } from "../../records/pages.ts";
import { recordQuota } from "../../records/quota.ts";
import { openTable, type Stored, type TableDeclaration } from "../../records/record-table.ts";
import type { SealedKey } from "../../secrets/sealed-keys.ts";
import type { Store, WriteTransaction } from "../../store/store.ts";

/** The algorithm of all wallets. */
export const walletAlgorithm = "ML-DSA-65";

const columns = {
  walletId: text("wallet_id"),
  label: text("label"),
  address: text("address"),
  /** Raw. */
  publicKey: bytes("public_key"),
  /** Who made it. */
  owner: text("owner"),
  createdAt: time("created_at_ms"),
};

/** A wallet without its secret key. */
export type Wallet = RecordOf<typeof columns>;

declare module "../../database/schema.ts" {
  interface Schema {
    wallets: RowOf<typeof columns> & PositionColumn & TagColumn;
  }
}

/** Names the list of all wallets, for page tokens and counts. */
export const walletList = "wallets";

/** Counts the wallets of an owner. */
export const walletQuota = recordQuota(walletList, "wallets");

const walletTable: TableDeclaration<typeof columns> = {
  name: walletList,
  columns,
  key: ["walletId"],
  owner: "owner",
  quota: walletQuota,
  describe: ({ walletId }) => `wallet ${walletId}`,
};

/** The wallets of the service. */
export interface WalletStore {
  /** @throws RecordDamagedError */
  find(walletId: string, principal: Principal): Promise<Wallet | undefined>;
  list(request: PageRequest, principal: Principal): Promise<Page<Stored<Wallet>>>;
  count(principal?: Principal): Promise<number>;
  /** Keeps a wallet, within a transaction. */
  insert(transaction: WriteTransaction, wallet: Wallet, secret: Uint8Array): Promise<void>;
}

/** Names a wallet's sealed secret key. */
export function nameSealedKey(wallet: Wallet): SealedKey {
  const { walletId, publicKey } = wallet;
  const identity = `wallets/${walletId}/secret-key`;
  return { record: walletTable.describe(wallet), identity, algorithm: walletAlgorithm, publicKey };
}

/** Makes the store of the service on the store of all. */
export function createWalletStore(store: Store): WalletStore {
  const wallets = openTable(store, walletTable);
  return {
    find: async (walletId, principal) => seenBy(principal, await wallets.findIntact({ walletId })),
    list: (request, principal) => wallets.list(request, {}, principal),
    count: (principal) => wallets.count({}, principal),
    async insert(transaction, wallet, secret) {
      await wallets.insert(transaction, wallet);
      await transaction.putSecret(nameSealedKey(wallet).identity, secret);
    },
  };
}
