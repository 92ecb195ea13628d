import {
  column,
  type ListedRow,
  type RecordOf,
  type RowOf,
  type TaggedRow,
} from "../../src/records/columns.ts";
import { createRecordTable, createTable } from "../../src/records/create-table.ts";
import { recordQuota } from "../../src/records/quota.ts";
import type { RecordTables, TableDeclaration } from "../../src/records/table-declaration.ts";

const repositoryColumns = {
  repository: column.text("repository"),
  owner: column.text("owner"),
  /** Wallet whose signers sign the root: of the newest root, or of the first one to propose. */
  walletId: column.text("wallet_id"),
  /** Keys in kms that sign the next versions. */
  targetsKeyId: column.text("targets_key_id"),
  snapshotKeyId: column.text("snapshot_key_id"),
  timestampKeyId: column.text("timestamp_key_id"),
  rootSeconds: column.integer("root_seconds"),
  targetsSeconds: column.integer("targets_seconds"),
  snapshotSeconds: column.integer("snapshot_seconds"),
  timestampSeconds: column.integer("timestamp_seconds"),
  /** 0 before the first root. */
  rootVersion: column.integer("root_version"),
  /** Grows with each change of the targets; the newest one's number. */
  sequence: column.integer("sequence"),
  /** The last change that is published. */
  publishedSequence: column.integer("published_sequence"),
  /** Grows with each change that metadata in preparation must not miss: of keys, delegations and metadata. */
  revision: column.integer("revision"),
  /** When the schedule renews snapshot or timestamp; undefined before the first root. */
  renewAt: column.optionalTime("renew_at_ms"),
  createdAt: column.time("created_at_ms"),
};

export type Repository = RecordOf<typeof repositoryColumns>;

export const repositoryQuota = recordQuota("tuf_repositories", "TUF repositories");

export const repositoryTable: TableDeclaration<typeof repositoryColumns> = {
  name: "tuf_repositories",
  columns: repositoryColumns,
  key: ["repository"],
  owner: "owner",
  quota: repositoryQuota,
  describe: ({ repository }) => `repository ${repository}`,
};

const delegationColumns = {
  repository: column.text("repository"),
  role: column.text("role"),
  /** Key in kms that signs the next version. */
  keyId: column.text("key_id"),
  /** Whether the next Publish removes it. */
  isRemoved: column.flag("is_removed"),
  /** Key that the newest targets metadata name; undefined if they do not name the role. */
  publishedKeyId: column.optionalText("published_key_id"),
};

export type Delegation = RecordOf<typeof delegationColumns>;

export const delegationTable: TableDeclaration<typeof delegationColumns> = {
  name: "tuf_delegations",
  columns: delegationColumns,
  key: ["repository", "role"],
  orderedBy: "role",
  describe: ({ repository, role }) => `role ${role} of repository ${repository}`,
};

const metadataColumns = {
  repository: column.text("repository"),
  role: column.text("role"),
  version: column.integer("version"),
  length: column.integer("length"),
  /** SHA-256 of the content, which is in another table. */
  sha256: column.bytes("sha256"),
  publishedAt: column.time("published_at_ms"),
  expiresAt: column.time("expires_at_ms"),
  /** The repository's publishedSequence, for targets. */
  sequence: column.integer("sequence"),
};

/** A published metadata file, without its content. */
export type Metadata = RecordOf<typeof metadataColumns>;

export const metadataTable: TableDeclaration<typeof metadataColumns> = {
  name: "tuf_metadata",
  columns: metadataColumns,
  key: ["repository", "role", "version"],
  orderedBy: "version",
  describe: ({ repository, role, version }) =>
    `version ${version} of role ${role} of repository ${repository}`,
};

/** No tag: the record of the file has the hash. */
const metadataContentTable = {
  name: "tuf_metadata_contents",
  columns: {
    repository: column.text("repository"),
    role: column.text("role"),
    version: column.integer("version"),
    content: column.bytes("content"),
  },
  key: ["repository", "role", "version"],
} as const;

const rootProposalColumns = {
  proposalId: column.text("proposal_id"),
  repository: column.text("repository"),
  version: column.integer("version"),
  /** Wallet of the proposed signers. */
  walletId: column.text("wallet_id"),
  targetsKeyId: column.text("targets_key_id"),
  snapshotKeyId: column.text("snapshot_key_id"),
  timestampKeyId: column.text("timestamp_key_id"),
  /** SHA-256 of the proposal's data. */
  sha256: column.bytes("sha256"),
  expiresAt: column.time("expires_at_ms"),
  isPublished: column.flag("is_published"),
};

/** A proposed root. Its metadata are the data of the proposal. */
export type RootProposalRecord = RecordOf<typeof rootProposalColumns>;

export const rootProposalTable: TableDeclaration<typeof rootProposalColumns> = {
  name: "tuf_root_proposals",
  columns: rootProposalColumns,
  key: ["proposalId"],
  describe: ({ proposalId }) => `root in proposal ${proposalId}`,
};

/** Signatures over proposed roots. No tag: publishing a root verifies them. */
const rootSignatureTable = {
  name: "tuf_root_signatures",
  columns: {
    proposalId: column.text("proposal_id"),
    signer: column.text("signer"),
    signature: column.bytes("signature"),
  },
  key: ["proposalId", "signer"],
} as const;

const targetColumns = {
  /** Names its content. */
  contentId: column.text("content_id"),
  repository: column.text("repository"),
  path: column.text("path"),
  owner: column.text("owner"),
  /** Empty if the uploader gave none. */
  version: column.text("version"),
  deviceTypes: column.jsonList("device_types"),
  length: column.integer("length"),
  sha256: column.bytes("sha256"),
  sha512: column.bytes("sha512"),
  /** The change that added it. */
  addedSequence: column.integer("added_sequence"),
  /** The change that removed or replaced it. */
  removedSequence: column.optionalInteger("removed_sequence"),
  uploadedAt: column.time("uploaded_at_ms"),
};

/** An uploaded file. The repository's publishedSequence shows whether it is published. */
export type TargetRecord = RecordOf<typeof targetColumns>;

export const targetQuota = recordQuota("tuf_targets", "targets in TUF repositories");

export const targetTable: TableDeclaration<typeof targetColumns> = {
  name: "tuf_targets",
  columns: targetColumns,
  key: ["contentId"],
  owner: "owner",
  filters: ["repository"],
  quota: targetQuota,
  describe: ({ repository, path }) => `target ${path} of repository ${repository}`,
};

declare module "../../src/database/schema.ts" {
  interface Schema {
    tuf_repositories: ListedRow<typeof repositoryColumns>;
    tuf_delegations: TaggedRow<typeof delegationColumns>;
    tuf_metadata: TaggedRow<typeof metadataColumns>;
    tuf_metadata_contents: RowOf<typeof metadataContentTable.columns>;
    tuf_root_proposals: ListedRow<typeof rootProposalColumns>;
    tuf_root_signatures: RowOf<typeof rootSignatureTable.columns>;
    tuf_targets: ListedRow<typeof targetColumns>;
  }
}

export const tufTables: RecordTables = {
  records: [repositoryTable, delegationTable, metadataTable, rootProposalTable, targetTable],
  tables: {
    tuf_repositories: ["position"],
    tuf_delegations: ["repository", "role"],
    tuf_metadata: ["repository", "role", "version"],
    tuf_metadata_contents: ["repository", "role", "version"],
    tuf_root_proposals: ["position"],
    tuf_root_signatures: ["proposal_id", "signer"],
    tuf_targets: ["position"],
  },
  largeTables: ["tuf_metadata_contents", "tuf_pieces"],
  steps: {
    "0010-tuf": (types) => [
      createRecordTable(types, repositoryTable),
      "create index tuf_repositories_by_owner_position on tuf_repositories (owner, position)",
      "create index tuf_repositories_by_renew_at_ms on tuf_repositories (renew_at_ms, position)",
      createRecordTable(types, delegationTable),
      createRecordTable(types, metadataTable),
      createTable(types, metadataContentTable),
      createRecordTable(types, rootProposalTable),
      "create index tuf_root_proposals_by_repository_position on tuf_root_proposals (repository, position)",
      createTable(types, rootSignatureTable),
      createRecordTable(types, targetTable),
      "create index tuf_targets_by_owner_position on tuf_targets (owner, position)",
      "create index tuf_targets_by_repository_position on tuf_targets (repository, position)",
      "create index tuf_targets_by_repository_path on tuf_targets (repository, path)",
    ],
  },
};
