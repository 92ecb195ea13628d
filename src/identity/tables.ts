import { sql } from "kysely";
import { algorithms } from "../crypto/algorithms.ts";
import { tokenAlgorithms } from "../crypto/jwt.ts";
import type { AnyRow } from "../database/schema.ts";
import { column, type TaggedRow } from "../records/columns.ts";
import { createRecordTable } from "../records/create-table.ts";
import type { RecordTables, TableDeclaration } from "../records/table-declaration.ts";

/** Index condition for entries that change an account or an issuer key. */
const ofChanges = `outcome = 'OK' and operation in ('CREATE_USER', 'SET_PASSWORD', 'REMOVE_USER', 'CREATE_CLIENT',
  'SET_CLIENT_SECRET', 'REMOVE_CLIENT', 'RETIRE_ISSUER_KEY')`;

/** Selects entries that change an account or an issuer key. */
export const changes = sql<boolean>`${sql.raw(ofChanges)}`;

/** Index condition for entries about revoked tokens. */
const ofRevocations = "outcome = 'OK' and operation = 'REVOKE_TOKEN'";

/** Selects entries about revoked tokens. */
export const revocations = sql<boolean>`${sql.raw(ofRevocations)}`;

/**
 * Selects the newest entry that changes an account or retires a key, in one statement with its record.
 *
 * @param subject the column with the name or ID
 */
function selectLastChange(subject: string, operations: readonly string[]) {
  return sql<string | null>`(
    select operation || ' ' || details from identity_entries
    where identity_entries.key_id = ${sql.ref(subject)} and ${sql.raw(ofChanges)}
      and operation in (${sql.join(operations.map((operation) => sql.lit(operation)))})
    order by sequence desc limit 1
  )`.as("last_change");
}

/**
 * Describes an account's generation in its log entries. Never change the format, because `hasEnded` looks for
 * it.
 */
export function describeGeneration(generation: string): string {
  return `generation=${generation}`;
}

/**
 * Returns whether the identity log records the end of an account, or of this generation of it. Accounts and
 * entries that predate the log, or come from a version that did not write generations, do not count as ended.
 */
function hasEnded({ last_change: lastChange, generation }: Readonly<AnyRow>): boolean {
  const [operation = "", details = ""] = String(lastChange ?? "").split(/ (.*)/s);
  if (operation.startsWith("REMOVE_")) return true;
  const logged = /(?:^|, )generation=(\S+)$/.exec(details)?.[1];
  return logged !== undefined && logged !== generation;
}

/** User roles, from least to most privileged. */
export const userRoles = ["user", "auditor", "admin"] as const;

const userColumns = {
  name: column.text("name"),
  role: column.choice("role", userRoles),
  /** An scrypt hash with its parameters: see passwords.ts. */
  passwordHash: column.text("password_hash"),
  /** Changes with the password. The server rejects tokens of any other generation. */
  generation: column.text("generation"),
  createdAt: column.time("created_at_ms"),
  /**
   * Owner of the user's records: random and permanent. A later user with the same name gets a different ID.
   */
  userId: column.unique(column.text("user_id")),
};

export const userTable: TableDeclaration<typeof userColumns> = {
  name: "users",
  columns: userColumns,
  key: ["name"],
  orderedBy: "name",
  describe: ({ name }) => `user ${name}`,
  alsoSelect: selectLastChange("users.name", ["CREATE_USER", "SET_PASSWORD", "REMOVE_USER"]),
  hasEnded,
};

const clientColumns = {
  /** The `client_id`. No user has the same name. */
  name: column.text("name"),
  role: column.choice("role", userRoles),
  /** A SHA-256 hash: see client-secrets.ts. */
  secretHash: column.text("secret_hash"),
  /** Changes with the secret. The server rejects tokens of any other generation. */
  generation: column.text("generation"),
  createdAt: column.time("created_at_ms"),
  /** Owner of the client's records, like a user's `userId`. */
  userId: column.unique(column.text("user_id")),
  /** Scopes that it may request. */
  scopes: column.spacedList("scopes"),
  /** Audiences for which it may request tokens, besides the issuer itself. */
  audiences: column.spacedList("audiences"),
  /** Audiences that it represents: it may introspect their tokens. */
  resources: column.spacedList("resources"),
  /** Whether it may exchange users' tokens for its own (RFC 8693). */
  mayExchange: column.flag("may_exchange"),
};

/** OAuth 2 clients. */
export const clientTable: TableDeclaration<typeof clientColumns> = {
  name: "oauth_clients",
  columns: clientColumns,
  key: ["name"],
  orderedBy: "name",
  describe: ({ name }) => `client ${name}`,
  alsoSelect: selectLastChange("oauth_clients.name", ["CREATE_CLIENT", "SET_CLIENT_SECRET", "REMOVE_CLIENT"]),
  hasEnded,
};

const issuerKeyColumns = {
  /** RFC 7638 thumbprint of the public key. */
  keyId: column.text("key_id"),
  /** Not in the tag: readers derive it from the length of the public key. */
  algorithm: column.untagged(column.text("algorithm")),
  /** Raw FIPS 204 public key: 1952 bytes for ML-DSA-65, 1312 for ML-DSA-44. */
  publicKey: column.bytes("public_key"),
  createdAt: column.time("created_at_ms"),
  /** When it stopped signing; undefined for the current key. */
  retiredAt: column.optionalTime("retired_at_ms"),
};

export const issuerKeyTable: TableDeclaration<typeof issuerKeyColumns> = {
  name: "issuer_keys",
  columns: issuerKeyColumns,
  key: ["keyId"],
  orderedBy: "key_id",
  isConsistent: ({ algorithm, publicKey }) => {
    const named = tokenAlgorithms.find((name) => name === algorithm);
    const fitting = tokenAlgorithms.find((name) => algorithms[name].publicKeyBytes === publicKey.length);
    return named !== undefined && (fitting ?? named) === named;
  },
  hasSecret: ({ retiredAt }) => retiredAt === undefined,
  secretName: "seed",
  describe: ({ keyId }) => `issuer key ${keyId}`,
  alsoSelect: selectLastChange("issuer_keys.key_id", ["RETIRE_ISSUER_KEY"]),
  hasEnded: (row) => (row.retired_at_ms ?? null) === null && (row.last_change ?? null) !== null,
};

declare module "../database/schema.ts" {
  interface Schema {
    users: TaggedRow<typeof userColumns>;
    issuer_keys: TaggedRow<typeof issuerKeyColumns>;
    oauth_clients: TaggedRow<typeof clientColumns>;
  }
}

/** Tables of users, clients and issuer keys: see users.ts, clients.ts and issuer-store.ts. */
export const identityTables: RecordTables = {
  records: [userTable, clientTable, issuerKeyTable],
  tables: {
    issuer_keys: ["key_id"],
    users: ["name"],
    oauth_clients: ["name"],
  },
  identityTables: ["issuer_keys", "users", "oauth_clients"],
  steps: {
    "0001-identity": (types) => [
      createRecordTable(types, issuerKeyTable),
      createRecordTable(types, userTable),
    ],
    "0002-identity": (types) => [
      createRecordTable(types, clientTable),
      `create table revoked_tokens (
        token_id text not null primary key,
        expires_at_ms ${types.integer} not null
      )`,
      "create index revoked_tokens_by_end on revoked_tokens (expires_at_ms)",
    ],
    // The identity log has an entry for each revocation, which nobody can remove unnoticed.
    "0006-identity": () => [
      "drop table revoked_tokens",
      `create index identity_entries_of_changes on identity_entries (key_id, sequence) where ${ofChanges}`,
      `create index identity_entries_of_revocations on identity_entries (details) where ${ofRevocations}`,
    ],
  },
};
