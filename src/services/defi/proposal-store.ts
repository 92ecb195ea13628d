/** What the governance service keeps of proposals, and of the signatures of these. */
import {
  bytes,
  choice,
  int32,
  jsonList,
  optionalTime,
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
import { nameList, openTable, type Stored, type TableDeclaration } from "../../records/record-table.ts";
import type { Store, WriteTransaction } from "../../store/store.ts";

const columns = {
  proposalId: text("proposal_id"),
  walletId: text("wallet_id"),
  data: bytes("data"),
  title: text("title"),
  threshold: int32("threshold"),
  status: choice("proposal_status", ["PENDING", "EXECUTED"]),
  /** Addresses of those who signed, in their order. */
  signedBy: jsonList("signed_by"),
  /** Whose wallet it is about. */
  owner: text("owner"),
  createdAt: time("created_at_ms"),
  expiresAt: optionalTime("expires_at_ms"),
  executedAt: optionalTime("executed_at_ms"),
};

/** A proposal. */
export type Proposal = RecordOf<typeof columns>;

declare module "../../database/schema.ts" {
  interface Schema {
    defi_proposals: RowOf<typeof columns> & PositionColumn & TagColumn;
    /** Who executes a proposal verifies its signatures: their rows have no tag. */
    defi_signatures: { proposal_id: string; signer: string; signature: Uint8Array };
  }
}

/** Filters of a list of proposals; empty for all. */
export interface ProposalFilter {
  readonly walletId: string;
  readonly status: string;
}

/** Names a list of proposals, for page tokens and counts. */
export function proposalList({ walletId, status }: ProposalFilter): string {
  return nameList("defi_proposals", { walletId, status });
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

/** The proposals of the service; what was changed behind our back throws RecordDamagedError. */
export interface ProposalStore {
  findProposal(proposalId: string, principal: Principal): Promise<Proposal | undefined>;
  /** Reads a proposal within a transaction. */
  findForChange(transaction: WriteTransaction, proposalId: string): Promise<Proposal | undefined>;
  listProposals(
    request: PageRequest,
    filter: ProposalFilter,
    principal: Principal,
  ): Promise<Page<Stored<Proposal>>>;
  countProposals(filter: ProposalFilter, principal?: Principal): Promise<number>;
  /** Keeps a proposal, within a transaction. */
  insertProposal(transaction: WriteTransaction, proposal: Proposal): Promise<void>;
  /** Adds a signature to a proposal, within a transaction. @returns the proposal with it */
  addSignature(
    transaction: WriteTransaction,
    proposal: Proposal,
    signer: string,
    signature: Uint8Array,
  ): Promise<Proposal>;
  /** Marks a proposal as executed, within a transaction. @returns the proposal as it is then */
  markExecuted(transaction: WriteTransaction, proposal: Proposal, now: Date): Promise<Proposal>;
  /** The signatures of a proposal by the signers' addresses. */
  readSignatures(proposalId: string): Promise<ReadonlyMap<string, Uint8Array>>;
}

/** Makes the store of proposals on the store of all. */
export function createProposalStore(store: Store): ProposalStore {
  const proposals = openTable(store, proposalTable);
  return {
    findProposal: async (proposalId, principal) =>
      seenBy(principal, await proposals.findIntact({ proposalId })),
    findForChange: ({ db }, proposalId) => proposals.findIntact({ proposalId }, db),
    listProposals: (request, { walletId, status }, principal) =>
      proposals.list(request, { walletId, status }, principal),
    countProposals: ({ walletId, status }, principal) => proposals.count({ walletId, status }, principal),
    insertProposal: proposals.insert,
    async addSignature(transaction, proposal, signer, signature) {
      const { proposalId } = proposal;
      await transaction.db
        .insertInto("defi_signatures")
        .values({ proposal_id: proposalId, signer, signature })
        .execute();
      const change = { signedBy: [...proposal.signedBy, signer] };
      return proposals.update(transaction, { record: proposal, isIntact: true }, change);
    },
    markExecuted: (transaction, proposal, now) =>
      proposals.update(
        transaction,
        { record: proposal, isIntact: true },
        { status: "EXECUTED", executedAt: now },
      ),
    async readSignatures(proposalId) {
      const rows = await store.reader
        .selectFrom("defi_signatures")
        .selectAll()
        .where("proposal_id", "=", proposalId)
        .execute();
      return new Map(rows.map(({ signer, signature }) => [signer, signature]));
    },
  };
}
