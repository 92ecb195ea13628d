import { column, type ListedRow, type RowOf, type TaggedRow } from "../../records/columns.ts";
import { createRecordTable, createTable } from "../../records/create-table.ts";
import { recordQuota } from "../../records/quota.ts";
import type { RecordTables, TableDeclaration } from "../../records/table-declaration.ts";

const walletColumns = {
  walletId: column.text("wallet_id"),
  threshold: column.int32("threshold"),
  /** Addresses of the signers. */
  signers: column.jsonList("signers"),
  /** User who created the wallet. */
  owner: column.text("owner"),
  createdAt: column.time("created_at_ms"),
};

const signerColumns = {
  walletId: column.text("wallet_id"),
  address: column.text("address"),
  /** Raw. */
  publicKey: column.bytes("public_key"),
  /** Whether the service stores the secret key; otherwise the signer does. */
  isServerHeld: column.flag("is_server_held"),
};

/** Quota for the signers of an owner's wallets. Each wallet has at least one signer. */
export const signerQuota = recordQuota("defi_signers", "signers of wallets");

export const walletTable: TableDeclaration<typeof walletColumns> = {
  name: "defi_wallets",
  columns: walletColumns,
  key: ["walletId"],
  owner: "owner",
  describe: ({ walletId }) => `wallet ${walletId}`,
};

export const signerTable: TableDeclaration<typeof signerColumns> = {
  name: "defi_signers",
  columns: signerColumns,
  key: ["walletId", "address"],
  orderedBy: "address",
  hasSecret: ({ isServerHeld }) => isServerHeld,
  describe: ({ walletId, address }) => `signer ${address} of wallet ${walletId}`,
};

const proposalColumns = {
  proposalId: column.text("proposal_id"),
  walletId: column.text("wallet_id"),
  data: column.bytes("data"),
  title: column.text("title"),
  threshold: column.int32("threshold"),
  status: column.choice("proposal_status", ["PENDING", "EXECUTED"]),
  /** Addresses of the signers that have signed, in signing order. */
  signedBy: column.jsonList("signed_by"),
  /** Owner of the wallet. */
  owner: column.text("owner"),
  createdAt: column.time("created_at_ms"),
  expiresAt: column.optionalTime("expires_at_ms"),
  executedAt: column.optionalTime("executed_at_ms"),
};

/** Quota for an owner's proposals. */
export const proposalQuota = recordQuota("defi_proposals", "proposals");

export const proposalTable: TableDeclaration<typeof proposalColumns> = {
  name: "defi_proposals",
  columns: proposalColumns,
  key: ["proposalId"],
  owner: "owner",
  filters: ["walletId", "status"],
  quota: proposalQuota,
  describe: ({ proposalId }) => `proposal ${proposalId}`,
};

/** Signature rows have no tag: executing a proposal verifies its signatures. */
const signatureTable = {
  name: "defi_signatures",
  columns: {
    proposalId: column.text("proposal_id"),
    signer: column.text("signer"),
    signature: column.bytes("signature"),
  },
  key: ["proposalId", "signer"],
} as const;

declare module "../../database/schema.ts" {
  interface Schema {
    defi_wallets: ListedRow<typeof walletColumns>;
    defi_signers: TaggedRow<typeof signerColumns>;
    defi_proposals: ListedRow<typeof proposalColumns>;
    defi_signatures: RowOf<typeof signatureTable.columns>;
  }
}

/** Tables for wallets, signers, proposals and signatures: see store.ts. */
export const defiTables: RecordTables = {
  records: [walletTable, signerTable, proposalTable],
  tables: {
    defi_wallets: ["position"],
    defi_signers: ["wallet_id", "address"],
    defi_proposals: ["position"],
    defi_signatures: ["proposal_id", "signer"],
  },
  steps: {
    "0001-defi": (types) => [
      createRecordTable(types, walletTable),
      "create index defi_wallets_by_owner_position on defi_wallets (owner, position)",
      createRecordTable(types, signerTable),
      createRecordTable(types, proposalTable),
      "create index defi_proposals_by_owner_position on defi_proposals (owner, position)",
      "create index defi_proposals_by_wallet_id_position on defi_proposals (wallet_id, position)",
      "create index defi_proposals_by_proposal_status_position on defi_proposals (proposal_status, position)",
      createTable(types, signatureTable),
    ],
  },
};
