/** Stores wallets with their signers, and proposals with their signatures. */
import type { RecordOf } from "../../records/columns.ts";
import { countForOwner } from "../../records/list-counts.ts";
import { openTable } from "../../records/record-table.ts";
import { intact } from "../../records/table-declaration.ts";
import type { Store } from "../../store/store.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import { proposalTable, signerQuota, signerTable, walletTable } from "./tables.ts";

export const signerAlgorithm = "ML-DSA-65";

export type MultisigWallet = RecordOf<typeof walletTable.columns>;

export type Signer = RecordOf<typeof signerTable.columns>;

export type DefiStore = ReturnType<typeof createDefiStore>;

export type Proposal = RecordOf<typeof proposalTable.columns>;

export function createDefiStore(store: Store) {
  const wallets = openTable(store, walletTable);
  const proposals = openTable(store, proposalTable);
  return {
    wallets,
    signers: openTable(store, signerTable),
    proposals,
    /**
     * Stores a wallet, within a transaction.
     *
     * @throws QuotaExceededError
     */
    async insertWallet(transaction: WriteTransaction, wallet: MultisigWallet): Promise<void> {
      const { length } = wallet.signers;
      await transaction.requireRoom(signerQuota, wallet.owner, length);
      await wallets.insert(transaction, wallet);
      await countForOwner(transaction.db, signerQuota, wallet.owner, length);
    },
    /**
     * Adds a signature to an intact proposal, within a transaction.
     *
     * @returns the updated proposal
     */
    async addSignature(
      transaction: WriteTransaction,
      proposal: Proposal,
      signer: string,
      signature: Uint8Array,
    ): Promise<Proposal> {
      const row = { proposal_id: proposal.proposalId, signer, signature };
      await transaction.db.insertInto("defi_signatures").values(row).execute();
      return proposals.update(transaction, intact(proposal), { signedBy: [...proposal.signedBy, signer] });
    },
    /** Reads a proposal's signatures by signer address. */
    async readSignatures(proposalId: string): Promise<ReadonlyMap<string, Uint8Array>> {
      const rows = await store.reader
        .selectFrom("defi_signatures")
        .selectAll()
        .where("proposal_id", "=", proposalId)
        .execute();
      return new Map(rows.map(({ signer, signature }) => [signer, signature]));
    },
  };
}
