/** Stores tokens and their transfers. */
import type { RecordOf } from "../../records/columns.ts";
import { countForOwner } from "../../records/list-counts.ts";
import { openTable } from "../../records/record-table.ts";
import { intact } from "../../records/table-declaration.ts";
import type { Store } from "../../store/store.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import { tokenTable, transferQuota, transferTable } from "./tables.ts";

export type Token = RecordOf<typeof tokenTable.columns>;

/** A change of ownership. */
export type Transfer = RecordOf<typeof transferTable.columns>;

export type NftStore = ReturnType<typeof createNftStore>;

export function createNftStore(store: Store) {
  const tokens = openTable(store, tokenTable);
  const transfers = openTable(store, transferTable);
  return {
    ...tokens,
    transfers,
    /** Transfers an intact token to another address, within a transaction. */
    async transfer(
      transaction: WriteTransaction,
      token: Token,
      toAddress: string,
      now: Date,
    ): Promise<Transfer> {
      const { tokenId, minter, currentOwner: fromAddress, transferCount } = token;
      await transaction.requireRoom(transferQuota, minter);
      const index = transferCount + 1;
      const transfer: Transfer = { tokenId, index, fromAddress, toAddress, timestamp: now };
      await transfers.insert(transaction, transfer);
      await countForOwner(transaction.db, transferQuota, minter, 1);
      await tokens.update(transaction, intact(token), { currentOwner: toAddress, transferCount: index });
      return transfer;
    },
  };
}
