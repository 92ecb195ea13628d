/** The grants of the service: which user may use which key of another. */
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

/** The use of a key that a grant allows. */
export interface UseOfGrant {
  readonly grantId: string;
  /** Whether the grant is for all versions of the name. */
  readonly isOfName: boolean;
  readonly operation: Operation;
}

/** Creates the store of grants on the shared store. */
export function createGrantStore(store: Store, now: () => Date) {
  const grants = openTable(store, grantTable);
  const isCurrent = ({ expiresAt }: GrantRecord): boolean => expiresAt === undefined || expiresAt > now();
  const current = () => sql<boolean>`(expires_at_ms is null or expires_at_ms > ${now().getTime()})`;
  return {
    ...grants,
    find: (grantId: string, transaction?: WriteTransaction) =>
      grants.find({ grantId }, transaction && { db: transaction.db }),
    isCurrent,
    /** The condition of a grant that has not expired. */
    current,
    /** Lists grants of a key, or of its name, to a grantee: those in force and unchanged, and first those of an operation. */
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
    /** Lists the first owners who have granted a name to a grantee, by grants in force and unchanged. */
    async listOwners(grantee: string, name: string): Promise<string[]> {
      const where = sql<boolean>`grantee = ${grantee} and key_name = ${name} and ${current()}`;
      // The first grant of each owner, so that many grants of one do not hide those of another.
      const first = sql<boolean>`position in (select min(position) from kms_grants where ${where} group by owner)`;
      const found = await grants.listWhere(first, sql`position`, maxOwners);
      return found.flatMap(({ record, isIntact }) => (isIntact ? [record.owner] : []));
    },
    /** The grants that have expired. */
    due: findDueRecords(grants, "expires_at_ms"),
    /** Reads the grants of several uses within a transaction. @returns a function that tells whether one is in force */
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

/** The most owners to name in a sentence. */
const maxOwners = 3;

/** The most grants to look at; one that allows the operation is enough. */
const maxGrants = 10;
