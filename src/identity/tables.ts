import type { TableOwner } from "../database/schema.ts";

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
