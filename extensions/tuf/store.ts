/** Stores repositories: their metadata files, targets, delegations and proposed roots. */
import { sql } from "kysely";
import { RecordDamagedError } from "../../src/database/store-error.ts";
import { refuse } from "../../src/errors.ts";
import { findDueRecords } from "../../src/records/due-records.ts";
import { type FindOptions, openTable } from "../../src/records/record-table.ts";
import { intact } from "../../src/records/table-declaration.ts";
import type { Store } from "../../src/store/store.ts";
import type { WriteTransaction } from "../../src/store/write-transaction.ts";
import { hashContent } from "./metadata.ts";
import { reasons } from "./reasons.ts";
import {
  type Delegation,
  delegationTable,
  type Metadata,
  metadataTable,
  type Repository,
  repositoryTable,
  rootProposalTable,
  targetTable,
} from "./tables.ts";

/** A file to publish. */
export interface MetadataFile {
  readonly metadata: Metadata;
  readonly content: Uint8Array;
}

/** Joins a file's content to what its record says besides length and hash. */
export function toMetadataFile(
  about: Omit<Metadata, "length" | "sha256">,
  content: Uint8Array,
): MetadataFile {
  return { metadata: { ...about, length: content.length, sha256: hashContent(content) }, content };
}

/** Maximum delegated roles of a repository, including removed ones, which snapshots keep listing. */
export const maxRoles = 256;

/** Selects the newest version of each role. */
export const isNewest = sql<boolean>`version = (
  select max(newer.version) from tuf_metadata as newer
  where newer.repository = tuf_metadata.repository and newer.role = tuf_metadata.role)`;

type Database = NonNullable<FindOptions["db"]>;

export type TufStore = ReturnType<typeof createTufStore>;

export function createTufStore(store: Store) {
  const repositories = openTable(store, repositoryTable);
  const metadata = openTable(store, metadataTable);
  const targets = openTable(store, targetTable);
  const delegations = openTable(store, delegationTable);
  return {
    repositories,
    metadata,
    targets,
    delegations,
    rootProposals: openTable(store, rootProposalTable),
    /** Repositories whose snapshot or timestamp is to be renewed. */
    due: findDueRecords(repositories, "renew_at_ms"),
    /** @throws REPOSITORY_NOT_FOUND, RecordDamagedError */
    async findRepository(repository: string, options: FindOptions = {}): Promise<Repository> {
      const found = await repositories.findIntact({ repository }, options);
      if (found !== undefined) return found;
      const advice = "create it, or correct its name";
      throw refuse(reasons.repositoryNotFound, `repository ${repository} does not exist; ${advice}`, {
        repository,
      });
    },
    /** Lists delegated roles by name, including removed ones. */
    async listDelegations(repository: string, db: Database = store.reader): Promise<Delegation[]> {
      const query = delegations.select(db).where("repository", "=", repository).orderBy("role");
      return (await query.execute()).map(delegations.readRow).map(delegations.requireIntact);
    },
    /** Reads the newest version of each role that has one. */
    async readNewest(
      repository: string,
      db: Database = store.reader,
    ): Promise<ReadonlyMap<string, Metadata>> {
      const rows = await metadata.select(db).where("repository", "=", repository).where(isNewest).execute();
      const files = rows.map(metadata.readRow).map(metadata.requireIntact);
      return new Map(files.map((file) => [file.role, file]));
    },
    /**
     * Reads a metadata file's content.
     *
     * @throws RecordDamagedError
     */
    async readContent(file: Metadata): Promise<Uint8Array> {
      const { repository, role, version, sha256 } = file;
      const row = await store.reader
        .selectFrom("tuf_metadata_contents")
        .select("content")
        .where("repository", "=", repository)
        .where("role", "=", role)
        .where("version", "=", version)
        .executeTakeFirst();
      if (row !== undefined && Buffer.compare(hashContent(row.content), sha256) === 0) return row.content;
      throw new RecordDamagedError(metadataTable.describe(file));
    },
    /** Publishes a metadata file, within a transaction. */
    async insertMetadata(
      transaction: WriteTransaction,
      { metadata: file, content }: MetadataFile,
    ): Promise<void> {
      const { repository, role, version } = file;
      await metadata.insert(transaction, file);
      const row = { repository, role, version, content };
      await transaction.db.insertInto("tuf_metadata_contents").values(row).execute();
    },
    /** Changes a repository as read in the transaction, and with it its revision. */
    async change(
      transaction: WriteTransaction,
      repository: Repository,
      change: Partial<Repository>,
    ): Promise<Repository> {
      const revision = repository.revision + 1;
      return repositories.update(transaction, intact(repository), { revision, ...change });
    },
    /** Reads the signatures over a proposed root by signer address. */
    async readRootSignatures(
      proposalId: string,
      db: Database = store.reader,
    ): Promise<ReadonlyMap<string, Uint8Array>> {
      const rows = await db
        .selectFrom("tuf_root_signatures")
        .selectAll()
        .where("proposal_id", "=", proposalId)
        .execute();
      return new Map(rows.map(({ signer, signature }) => [signer, signature]));
    },
    /**
     * Stores a signature over a proposed root, within a transaction.
     *
     * @returns false if the signer has one already
     */
    async insertRootSignature(
      { db }: WriteTransaction,
      proposalId: string,
      { address: signer, signature }: { readonly address: string; readonly signature: Uint8Array },
    ): Promise<boolean> {
      const { numInsertedOrUpdatedRows } = await db
        .insertInto("tuf_root_signatures")
        .values({ proposal_id: proposalId, signer, signature })
        .onConflict((conflict) => conflict.doNothing())
        .executeTakeFirstOrThrow();
      return numInsertedOrUpdatedRows === 1n;
    },
  };
}
