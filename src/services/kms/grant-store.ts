/** Stores grants: which user may use which key of another user. */
import type { Kysely } from "kysely";
import { sql } from "kysely";
import type { Schema } from "../../database/schema.ts";
import { findDueRecords } from "../../records/due-records.ts";
import { openTable } from "../../records/record-table.ts";
import type { Store } from "../../store/store.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import type { Operation } from "./event.ts";
import type { KeyRecord } from "./tables.ts";
import { type GrantRecord, grantTable } from "./tables.ts";

/** A use of a key that relies on a grant. */
export interface UseOfGrant {
  readonly grantId: string;
  /** Whether the grant covers all versions of the name. */
  readonly isOfName: boolean;
  readonly operation: Operation;
}

export function createGrantStore(store: Store, now: () => Date) {
  const grants = openTable(store, grantTable);
  const isCurrent = ({ expiresAt }: GrantRecord): boolean => expiresAt === undefined || expiresAt > now();
  const current = () => sql<boolean>`(expires_at_ms is null or expires_at_ms > ${now().getTime()})`;
  return {
    ...grants,
    find: (grantId: string, transaction?: WriteTransaction) =>
      grants.find({ grantId }, transaction && { db: transaction.db }),
    isCurrent,
    /** Grants that have not expired. */
    current,
    /**
     * Lists a grantee's grants for a key, or for its name, that are in force and unchanged; grants that allow
     * the operation come first.
     */
    async listFor(
      grantee: string,
      { keyId, owner, name = "" }: Pick<KeyRecord, "keyId" | "owner" | "name">,
      operation: Operation,
    ): Promise<GrantRecord[]> {
      const ofKey = sql`(key_id = ${keyId} or (key_id = '' and owner = ${owner} and key_name = ${name}))`;
      const where = sql<boolean>`grantee = ${grantee} and ${ofKey} and ${current()}`;
      const isOther = sql`case when ' ' || operations || ' ' like ${`% ${operation} %`} then 0 else 1 end`;
      const found = await grants.listWhere(where, sql`${isOther}, position`, maxGrants);
      return found.flatMap(({ record, isIntact }) => (isIntact ? [record] : []));
    },
    /** Lists the first owners who granted a name to a grantee, by grants that are in force and unchanged. */
    async listOwners(grantee: string, name: string): Promise<string[]> {
      const where = sql<boolean>`grantee = ${grantee} and key_name = ${name} and ${current()}`;
      // Only each owner's first grant, so that one owner's many grants do not hide another's.
      const first = sql<boolean>`position in (select min(position) from kms_grants where ${where} group by owner)`;
      const found = await grants.listWhere(first, sql`position`, maxOwners);
      return found.flatMap(({ record, isIntact }) => (isIntact ? [record.owner] : []));
    },
    /** Expired grants. */
    due: findDueRecords(grants, "expires_at_ms"),
    /**
     * Reads the grants behind several uses, within a transaction.
     *
     * @returns a function that reports whether a use's grant is in force
     */
    async checkUses(
      uses: readonly (UseOfGrant | undefined)[],
      db: Kysely<Schema>,
    ): Promise<(use: UseOfGrant | undefined) => boolean> {
      const wanted = uses.flatMap((use) => (use === undefined ? [] : [use.grantId]));
      if (wanted.length === 0) return (use) => use === undefined;
      const found = await grants.findSome("grantId", wanted, db);
      const known = new Map(found.map((grant) => [grant.record.grantId, grant]));
      return (use) => {
        if (use === undefined) return true;
        const grant = known.get(use.grantId);
        if (grant === undefined || !grant.isIntact || !isCurrent(grant.record)) return false;
        return grant.record.operations.includes(use.operation);
      };
    },
  };
}

/** Maximum number of owners to name in a message. */
const maxOwners = 3;

/** Maximum number of grants to read; one that allows the operation suffices. */
const maxGrants = 10;
