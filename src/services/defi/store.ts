/** What the governance service keeps of wallets: their thresholds, and their signers. */
import {
  bytes,
  flag,
  int32,
  jsonList,
  type PositionColumn,
  type RecordOf,
  type RowOf,
  type TagColumn,
  text,
  time,
} from "../../records/columns.ts";
import { changeCounts } from "../../records/list-counts.ts";
import { listSeenBy, type Principal, seenBy } from "../../records/ownership.ts";
import type { Page, PageRequest } from "../../records/pages.ts";
import { recordQuota } from "../../records/quota.ts";
import { openTable, type Stored, type TableDeclaration } from "../../records/record-table.ts";
import type { SealedKey } from "../../secrets/sealed-keys.ts";
import type { Store, WriteTransaction } from "../../store/store.ts";
import { createProposalStore, type ProposalStore } from "./proposal-store.ts";

/** The algorithm of all signers. */
export const signerAlgorithm = "ML-DSA-65";

const walletColumns = {
  walletId: text("wallet_id"),
  threshold: int32("threshold"),
  /** Addresses. */
  signers: jsonList("signers"),
  /** Who made it. */
  owner: text("owner"),
  createdAt: time("created_at_ms"),
};

/** A wallet that several signers govern. */
export type MultisigWallet = RecordOf<typeof walletColumns>;

const signerColumns = {
  walletId: text("wallet_id"),
  address: text("address"),
  /** Raw. */
  publicKey: bytes("public_key"),
  /** Whether the service keeps the secret key; else the signer does. */
  isServerHeld: flag("is_server_held"),
};

/** A signer of a wallet. */
export type Signer = RecordOf<typeof signerColumns>;

declare module "../../database/schema.ts" {
  interface Schema {
    defi_wallets: RowOf<typeof walletColumns> & PositionColumn & TagColumn;
    defi_signers: RowOf<typeof signerColumns> & TagColumn;
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
  const { walletId, address, publicKey } = signer;
  const identity = `defi_signers/${walletId}/${address}/secret-key`;
  return { record: signerTable.describe(signer), identity, algorithm: signerAlgorithm, publicKey };
}

/** The wallets and proposals of the service; what was changed behind our back throws RecordDamagedError. */
export interface DefiStore extends ProposalStore {
  findWallet(walletId: string, principal: Principal): Promise<MultisigWallet | undefined>;
  findSigner(walletId: string, address: string): Promise<Signer | undefined>;
  listWallets(request: PageRequest, principal: Principal): Promise<Page<Stored<MultisigWallet>>>;
  countWallets(principal?: Principal): Promise<number>;
  /** Keeps a wallet, within a transaction. */
  insertWallet(transaction: WriteTransaction, wallet: MultisigWallet): Promise<void>;
  /** Keeps a signer, within a transaction. @param secret of one whose key the service keeps */
  insertSigner(transaction: WriteTransaction, signer: Signer, secret?: Uint8Array): Promise<void>;
}

/** Makes the store of the service on the store of all. */
export function createDefiStore(store: Store): DefiStore {
  const wallets = openTable(store, walletTable);
  const signers = openTable(store, signerTable);
  return {
    ...createProposalStore(store),
    findWallet: async (walletId, principal) => seenBy(principal, await wallets.findIntact({ walletId })),
    findSigner: (walletId, address) => signers.findIntact({ walletId, address }),
    listWallets: (request, principal) => wallets.list(request, {}, principal),
    countWallets: (principal) => wallets.count({}, principal),
    async insertWallet(transaction, wallet) {
      const { length } = wallet.signers;
      await transaction.requireRoom(signerQuota, wallet.owner, length);
      await wallets.insert(transaction, wallet);
      await changeCounts(transaction.db, [listSeenBy(wallet, signerQuota.list)], length);
    },
    async insertSigner(transaction, signer, secret) {
      await signers.insert(transaction, signer);
      if (secret !== undefined) await transaction.putSecret(nameSealedKey(signer).identity, secret);
    },
  };
}
