/** What the wallet service keeps: wallets, their secret keys sealed. */

import { readTime } from "../../database/row-values.ts";
import type { WalletsTable } from "../../database/schema.ts";
import { changeCounts, readCount } from "../../records/list-counts.ts";
import {
  countedLists,
  listSeenBy,
  type Principal,
  seenBy,
  systemPrincipal,
} from "../../records/ownership.ts";
import { cutPage, type Page, type PageRequest } from "../../records/pages.ts";
import { nextPosition } from "../../records/positions.ts";
import { recordQuota } from "../../records/quota.ts";
import type { Marked } from "../../records/tag.ts";
import type { SealedKey } from "../../secrets/sealed-keys.ts";
import type { Store, WriteTransaction } from "../../store/store.ts";

/** The algorithm of all wallets. */
export const walletAlgorithm = "ML-DSA-65";

/** A wallet without its secret key. */
export interface Wallet {
  readonly walletId: string;
  readonly label: string;
  readonly address: string;
  /** Raw. */
  readonly publicKey: Uint8Array;
  /** Who made it. */
  readonly owner: string;
  readonly createdAt: Date;
}

/** Names the list of all wallets, for page tokens and counts. */
export const walletList = "wallets";

/** Counts the wallets of an owner. */
export const walletQuota = recordQuota(walletList, "wallets");

/** The wallets of the service. */
export interface WalletStore {
  /** @throws RecordDamaged */
  find(walletId: string, principal: Principal): Promise<Wallet | undefined>;
  list(request: PageRequest, principal: Principal): Promise<Page<Marked<Wallet>>>;
  count(principal?: Principal): Promise<number>;
  /** Keeps a wallet, within a transaction. */
  insert(transaction: WriteTransaction, wallet: Wallet, secret: Uint8Array): Promise<void>;
}

/** Names a wallet's sealed secret key. */
export function nameSealedKey({ walletId, publicKey }: Wallet): SealedKey {
  const identity = `wallets/${walletId}/secret-key`;
  return { record: `wallet ${walletId}`, identity, algorithm: walletAlgorithm, publicKey };
}

/** Makes the store of the service on the store of all. */
export function createWalletStore(store: Store): WalletStore {
  return {
    async find(walletId, principal) {
      const row = await store.reader
        .selectFrom("wallets")
        .selectAll()
        .where("wallet_id", "=", walletId)
        .executeTakeFirst();
      const wallet = row && toWallet(row);
      if (wallet) store.requireTagged(`wallet ${walletId}`, listTaggedFields(wallet), row.record_tag);
      return seenBy(principal, wallet);
    },
    async list(request, principal) {
      let query = store.reader.selectFrom("wallets").selectAll().where("position", ">", request.after);
      if (principal.owner !== undefined) query = query.where("owner", "=", principal.owner);
      const rows = await query
        .orderBy("position")
        .limit(request.limit + 1)
        .execute();
      const page = cutPage(rows, request, listSeenBy(principal, walletList), ({ position }) => position);
      const pack = (row: WalletsTable): Marked<Wallet> => {
        const wallet = toWallet(row);
        return { ...wallet, isIntact: store.isTagged(listTaggedFields(wallet), row.record_tag) };
      };
      return { ...page, rows: page.rows.map(pack) };
    },
    count: (principal = systemPrincipal) => readCount(store.reader, listSeenBy(principal, walletList)),
    async insert({ db, putSecret, requireRoom }, wallet, secret) {
      await requireRoom(walletQuota, wallet.owner);
      await db
        .insertInto("wallets")
        .values({
          position: await nextPosition(db, "wallets"),
          wallet_id: wallet.walletId,
          label: wallet.label,
          address: wallet.address,
          public_key: wallet.publicKey,
          owner: wallet.owner,
          created_at_ms: wallet.createdAt.getTime(),
          record_tag: store.tagRecord(listTaggedFields(wallet)),
        })
        .execute();
      await changeCounts(db, countedLists([walletList], wallet), 1);
      await putSecret(nameSealedKey(wallet).identity, secret);
    },
  };
}

/** All that a wallet's tag binds; in this order for the life of a store. */
function listTaggedFields({ walletId, label, address, publicKey, owner, createdAt }: Wallet) {
  return ["wallets", walletId, label, address, publicKey, owner, createdAt.getTime()];
}

function toWallet(row: WalletsTable): Wallet {
  return {
    walletId: row.wallet_id,
    label: row.label,
    address: row.address,
    publicKey: row.public_key,
    owner: row.owner,
    createdAt: readTime(row.created_at_ms),
  };
}
