/** What the governance service keeps of proposals, and of the signatures of these. */
import type { RecordOf } from "../../records/columns.ts";
import type { Principal } from "../../records/ownership.ts";
import { openTable } from "../../records/record-table.ts";
import { type Filters, intact, nameList } from "../../records/table-declaration.ts";
import type { Store } from "../../store/store.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import { proposalTable } from "./tables.ts";

/** A proposal. */
export type Proposal = RecordOf<typeof proposalTable.columns>;

/** Names a list of proposals, for page tokens and counts. */
export function proposalList(filters: Filters<typeof proposalTable.columns>): string {
  return nameList(proposalTable, filters);
}

/** Makes the store of proposals on the store of all. */
export function createProposalStore(store: Store) {
  const proposals = openTable(store, proposalTable);
  return {
    /** @throws RecordDamagedError */
    findProposal: (proposalId: string, principal: Principal) =>
      proposals.findIntact({ proposalId }, { principal }),
    /** Reads a proposal within a transaction. @throws RecordDamagedError */
    findForChange: ({ db }: WriteTransaction, proposalId: string) =>
      proposals.findIntact({ proposalId }, { db }),
    listProposals: proposals.list,
    countProposals: proposals.count,
    insertProposal: proposals.insert,
    /** Adds a signature to an intact proposal, within a transaction. @returns the proposal with it */
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
    /** Marks an intact proposal as executed, within a transaction. @returns the proposal as it is then */
    markExecuted: (transaction: WriteTransaction, proposal: Proposal, executedAt: Date) =>
      proposals.update(transaction, intact(proposal), { status: "EXECUTED", executedAt }),
    /** The signatures of a proposal by the signers' addresses. */
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
