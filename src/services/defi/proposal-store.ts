/** Stores proposals and their signatures. */
import type { RecordOf } from "../../records/columns.ts";
import type { Principal } from "../../records/ownership.ts";
import { openTable } from "../../records/record-table.ts";
import { intact } from "../../records/table-declaration.ts";
import type { Store } from "../../store/store.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import { proposalTable } from "./tables.ts";

/** A proposal. */
export type Proposal = RecordOf<typeof proposalTable.columns>;

/** Creates the store of proposals on top of the shared store. */
export function createProposalStore(store: Store) {
  const proposals = openTable(store, proposalTable);
  return {
    /** @throws RecordDamagedError */
    findProposal: (proposalId: string, principal: Principal) =>
      proposals.findIntact({ proposalId }, { principal }),
    /** Reads a proposal within a transaction. @throws RecordDamagedError */
    findForChange: ({ db }: WriteTransaction, proposalId: string) =>
      proposals.findIntact({ proposalId }, { db }),
    proposals,
    /** Adds a signature to an intact proposal, within a transaction. @returns the updated proposal */
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
    /** Marks an intact proposal as executed, within a transaction. @returns the updated proposal */
    markExecuted: (transaction: WriteTransaction, proposal: Proposal, executedAt: Date) =>
      proposals.update(transaction, intact(proposal), { status: "EXECUTED", executedAt }),
    /** Reads the signatures of a proposal, keyed by the signers' addresses. */
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
