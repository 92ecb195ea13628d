/** What the governance service keeps of proposals, and of the signatures of these. */
import { column, type ListedRow, type RecordOf } from "../../records/columns.ts";
import type { Principal } from "../../records/ownership.ts";
import { recordQuota } from "../../records/quota.ts";
import { openTable } from "../../records/record-table.ts";
import { type Filters, intact, nameList, type TableDeclaration } from "../../records/table-declaration.ts";
import type { Store, WriteTransaction } from "../../store/store.ts";

const columns = {
  proposalId: column.text("proposal_id"),
  walletId: column.text("wallet_id"),
  data: column.bytes("data"),
  title: column.text("title"),
  threshold: column.int32("threshold"),
  status: column.choice("proposal_status", ["PENDING", "EXECUTED"]),
  /** Addresses of those who signed, in their order. */
  signedBy: column.jsonList("signed_by"),
  /** Whose wallet it is about. */
  owner: column.text("owner"),
  createdAt: column.time("created_at_ms"),
  expiresAt: column.optionalTime("expires_at_ms"),
  executedAt: column.optionalTime("executed_at_ms"),
};

/** A proposal. */
export type Proposal = RecordOf<typeof columns>;

declare module "../../database/schema.ts" {
  interface Schema {
    defi_proposals: ListedRow<typeof columns>;
    /** Whoever executes a proposal verifies its signatures: their rows have no tag. */
    defi_signatures: { proposal_id: string; signer: string; signature: Uint8Array };
  }
}

/** Counts the proposals of an owner. */
export const proposalQuota = recordQuota("defi_proposals", "proposals");

const proposalTable: TableDeclaration<typeof columns> = {
  name: "defi_proposals",
  columns,
  key: ["proposalId"],
  owner: "owner",
  filters: ["walletId", "status"],
  quota: proposalQuota,
  describe: ({ proposalId }) => `proposal ${proposalId}`,
};

/** Names a list of proposals, for page tokens and counts. */
export function proposalList(filters: Filters<typeof columns>): string {
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
