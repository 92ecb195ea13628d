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

const issuerKeyColumns = {
  /** The RFC 7638 thumbprint of the public key. */
  keyId: column.text("key_id"),
  algorithm: column.untagged(column.text("algorithm")),
  /** The raw FIPS 204 public key, 1952 bytes. */
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
  }
}

/** The tables of users and of the issuer's keys: see users.ts and issuer-store.ts. */
export const identityTables: TableOwner = {
  tables: { issuer_keys: ["key_id"], users: ["name"] },
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
  },
};
