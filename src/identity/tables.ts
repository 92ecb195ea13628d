import type { TableOwner } from "../database/schema.ts";
import { column, type TaggedRow } from "../records/columns.ts";
import type { TableDeclaration } from "../records/table-declaration.ts";

/** The roles of users, from the least to the most privileges. */
export const userRoles = ["user", "auditor", "admin"] as const;

const userColumns = {
  name: column.text("name"),
  role: column.choice("role", userRoles),
  /** An scrypt hash with its parameters: see passwords.ts. */
  passwordHash: column.text("password_hash"),
  /** Changes with the password. The server refuses tokens of another generation. */
  generation: column.text("generation"),
  createdAt: column.time("created_at_ms"),
  /** The owner of the user's records. It is random and never changes. A later user of the same name gets another. */
  userId: column.text("user_id"),
};

export const userTable: TableDeclaration<typeof userColumns> = {
  name: "users",
  columns: userColumns,
  key: ["name"],
  orderedBy: "name",
  describe: ({ name }) => `user ${name}`,
};

const clientColumns = {
  /** The `client_id`. No user has the same name. */
  name: column.text("name"),
  role: column.choice("role", userRoles),
  /** An scrypt hash with its parameters: see passwords.ts. */
  secretHash: column.text("secret_hash"),
  /** Changes with the secret. The server refuses tokens of another generation. */
  generation: column.text("generation"),
  createdAt: column.time("created_at_ms"),
  /** The owner of the client's records, as `userId` is for a user. */
  userId: column.text("user_id"),
  /** The scopes that it may request. */
  scopes: column.spacedList("scopes"),
  /** The audiences that it may request tokens for, besides the issuer itself. */
  audiences: column.spacedList("audiences"),
  /** The audiences that it is itself: it may introspect their tokens. */
  resources: column.spacedList("resources"),
  /** Whether it may exchange the tokens of users for its own tokens (RFC 8693). */
  mayExchange: column.flag("may_exchange"),
};

/** The clients of OAuth 2. */
export const clientTable: TableDeclaration<typeof clientColumns> = {
  name: "oauth_clients",
  columns: clientColumns,
  key: ["name"],
  orderedBy: "name",
  describe: ({ name }) => `client ${name}`,
};

/** A token that was revoked before its end. */
interface RevokedTokensTable {
  /** The claim `jti`. */
  token_id: string;
  /** When the token ends, and the row may go. */
  expires_at_ms: number;
}

const issuerKeyColumns = {
  /** The RFC 7638 thumbprint of the public key. */
  keyId: column.text("key_id"),
  /** Not in the tag: readers take the length of the public key instead. */
  algorithm: column.untagged(column.text("algorithm")),
  /** The raw FIPS 204 public key: 1952 bytes for ML-DSA-65, 1312 for ML-DSA-44. */
  publicKey: column.bytes("public_key"),
  createdAt: column.time("created_at_ms"),
  /** The time when it stopped signing; undefined for the current key. */
  retiredAt: column.optionalTime("retired_at_ms"),
};

export const issuerKeyTable: TableDeclaration<typeof issuerKeyColumns> = {
  name: "issuer_keys",
  columns: issuerKeyColumns,
  key: ["keyId"],
  orderedBy: "key_id",
  describe: ({ keyId }) => `key ${keyId} of the issuer`,
};

declare module "../database/schema.ts" {
  interface Schema {
    users: TaggedRow<typeof userColumns>;
    issuer_keys: TaggedRow<typeof issuerKeyColumns>;
    oauth_clients: TaggedRow<typeof clientColumns>;
    revoked_tokens: RevokedTokensTable;
  }
}

/** The tables of users, clients and the issuer's keys: see users.ts, clients.ts and issuer-store.ts. */
export const identityTables: TableOwner = {
  tables: {
    issuer_keys: ["key_id"],
    users: ["name"],
    oauth_clients: ["name"],
    revoked_tokens: ["token_id"],
  },
  identityTables: ["issuer_keys", "users", "oauth_clients"],
  steps: {
    "0001-identity": ({ bytes, integer }) => [
      `create table issuer_keys (
        key_id text not null primary key,
        algorithm text not null,
        public_key ${bytes} not null,
        created_at_ms ${integer} not null,
        retired_at_ms ${integer},
        record_tag text not null
      )`,
      `create table users (
        name text not null primary key,
        role text not null,
        password_hash text not null,
        generation text not null,
        created_at_ms ${integer} not null,
        user_id text not null unique,
        record_tag text not null
      )`,
    ],
    "0002-identity": ({ integer }) => [
      `create table oauth_clients (
        name text not null primary key,
        role text not null,
        secret_hash text not null,
        generation text not null,
        created_at_ms ${integer} not null,
        user_id text not null unique,
        scopes text not null,
        audiences text not null,
        resources text not null,
        may_exchange ${integer} not null,
        record_tag text not null
      )`,
      `create table revoked_tokens (
        token_id text not null primary key,
        expires_at_ms ${integer} not null
      )`,
      "create index revoked_tokens_by_end on revoked_tokens (expires_at_ms)",
    ],
  },
};
