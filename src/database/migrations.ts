/** The steps from an empty database to the present schema. A step that was shipped never changes. */
import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";
import type { DatabaseKind } from "./connection.ts";

/** Name to step; they run in the order of their names, each once. */
export function createMigrations(kind: DatabaseKind): Readonly<Record<string, Migration>> {
  const bytes = kind === "sqlite" ? sql`blob` : sql`bytea`;
  // SQLite's integers have up to 64 bits; PostgreSQL's have 32.
  const integer = kind === "sqlite" ? sql`integer` : sql`bigint`;
  return {
    "0001-issuer-keys": {
      async up(db: Kysely<unknown>): Promise<void> {
        await db.schema
          .createTable("issuer_keys")
          .addColumn("key_id", "text", (column) => column.primaryKey())
          .addColumn("algorithm", "text", (column) => column.notNull())
          .addColumn("public_key", bytes, (column) => column.notNull())
          .addColumn("master_key_id", "text", (column) => column.notNull())
          .addColumn("wrapped_data_key", bytes, (column) => column.notNull())
          .addColumn("sealed_seed", bytes, (column) => column.notNull())
          .addColumn("created_at_ms", integer, (column) => column.notNull())
          .addColumn("retired_at_ms", integer)
          .execute();
      },
    },
    "0002-sealed-secrets": {
      async up(db: Kysely<unknown>): Promise<void> {
        await db.schema
          .createTable("sealed_secrets")
          .addColumn("identity", "text", (column) => column.primaryKey())
          .addColumn("master_key_id", "text", (column) => column.notNull())
          .addColumn("wrapped_data_key", bytes, (column) => column.notNull())
          .addColumn("ciphertext", bytes, (column) => column.notNull())
          .execute();
        await createIndex(db, "sealed_secrets", ["master_key_id", "identity"]);
        await sql`insert into sealed_secrets (identity, master_key_id, wrapped_data_key, ciphertext)
          select 'issuer_keys/' || key_id || '/seed', master_key_id, wrapped_data_key, sealed_seed
          from issuer_keys`.execute(db);
        for (const column of ["master_key_id", "wrapped_data_key", "sealed_seed"])
          await db.schema.alterTable("issuer_keys").dropColumn(column).execute();
      },
    },
    "0003-audit": {
      async up(db: Kysely<unknown>): Promise<void> {
        await db.schema
          .createTable("audit_entries")
          .addColumn("sequence", integer, (column) => column.primaryKey())
          .addColumn("key_id", "text", (column) => column.notNull())
          .addColumn("operation", "text", (column) => column.notNull())
          .addColumn("user_name", "text", (column) => column.notNull())
          .addColumn("occurred_at_ms", integer, (column) => column.notNull())
          .addColumn("outcome", "text", (column) => column.notNull())
          .addColumn("details", "text", (column) => column.notNull())
          .addColumn("entry_hash", "text", (column) => column.notNull())
          .addColumn("entry_tag", "text", (column) => column.notNull())
          .execute();
        await createIndex(db, "audit_entries", ["key_id", "sequence"]);
        await db.schema
          .createTable("audit_head")
          .addColumn("id", integer, (column) => column.primaryKey())
          .addColumn("sequence", integer, (column) => column.notNull())
          .addColumn("entry_hash", "text", (column) => column.notNull())
          .addColumn("head_tag", "text", (column) => column.notNull())
          .execute();
        await db.schema
          .createTable("audit_checkpoints")
          .addColumn("sequence", integer, (column) => column.primaryKey())
          .addColumn("entry_hash", "text", (column) => column.notNull())
          .addColumn("signed_at_ms", integer, (column) => column.notNull())
          .addColumn("signature", bytes, (column) => column.notNull())
          .execute();
      },
    },
    "0004-idempotent-answers": {
      async up(db: Kysely<unknown>): Promise<void> {
        await db.schema
          .createTable("idempotent_answers")
          .addColumn("user_name", "text", (column) => column.notNull())
          .addColumn("idempotency_key", "text", (column) => column.notNull())
          .addColumn("request_hash", "text", (column) => column.notNull())
          .addColumn("sealed_answer", bytes, (column) => column.notNull())
          .addColumn("answered_at_ms", integer, (column) => column.notNull())
          .addPrimaryKeyConstraint("idempotent_answers_key", ["user_name", "idempotency_key"])
          .execute();
        await createIndex(db, "idempotent_answers", ["answered_at_ms"]);
      },
    },
    "0005-kms-keys": {
      async up(db: Kysely<unknown>): Promise<void> {
        await db.schema
          .createTable("kms_keys")
          .addColumn("position", integer, (column) => column.primaryKey())
          .addColumn("key_id", "text", (column) => column.notNull().unique())
          .addColumn("alias", "text", (column) => column.notNull())
          .addColumn("algorithm", "text", (column) => column.notNull())
          .addColumn("key_usage", "text", (column) => column.notNull())
          .addColumn("key_state", "text", (column) => column.notNull())
          .addColumn("public_key", bytes, (column) => column.notNull())
          .addColumn("owner", "text", (column) => column.notNull())
          .addColumn("created_at_ms", integer, (column) => column.notNull())
          .addColumn("record_tag", "text", (column) => column.notNull())
          .execute();
        await createIndex(db, "kms_keys", ["owner", "position"]);
        await createIndex(db, "kms_keys", ["key_state", "position"]);
        await createIndex(db, "kms_keys", ["algorithm", "position"]);
        await db.schema
          .createTable("list_counts")
          .addColumn("list_name", "text", (column) => column.primaryKey())
          .addColumn("row_count", integer, (column) => column.notNull())
          .execute();
      },
    },
    "0006-wallets": {
      async up(db: Kysely<unknown>): Promise<void> {
        await db.schema
          .createTable("wallets")
          .addColumn("position", integer, (column) => column.primaryKey())
          .addColumn("wallet_id", "text", (column) => column.notNull().unique())
          .addColumn("label", "text", (column) => column.notNull())
          .addColumn("address", "text", (column) => column.notNull().unique())
          .addColumn("public_key", bytes, (column) => column.notNull())
          .addColumn("owner", "text", (column) => column.notNull())
          .addColumn("created_at_ms", integer, (column) => column.notNull())
          .addColumn("record_tag", "text", (column) => column.notNull())
          .execute();
      },
    },
    "0007-nft": {
      async up(db: Kysely<unknown>): Promise<void> {
        await db.schema
          .createTable("nft_tokens")
          .addColumn("position", integer, (column) => column.primaryKey())
          .addColumn("token_id", "text", (column) => column.notNull().unique())
          .addColumn("name", "text", (column) => column.notNull())
          .addColumn("description", "text", (column) => column.notNull())
          .addColumn("artwork_uri", "text", (column) => column.notNull())
          .addColumn("metadata_hash", "text", (column) => column.notNull())
          .addColumn("creator_address", "text", (column) => column.notNull())
          .addColumn("creator_public_key", bytes, (column) => column.notNull())
          .addColumn("creator_signature", bytes, (column) => column.notNull())
          .addColumn("current_owner", "text", (column) => column.notNull())
          .addColumn("transfer_count", integer, (column) => column.notNull())
          .addColumn("minted_at_ms", integer, (column) => column.notNull())
          .addColumn("record_tag", "text", (column) => column.notNull())
          .execute();
        await createIndex(db, "nft_tokens", ["current_owner", "position"]);
        await db.schema
          .createTable("nft_transfers")
          .addColumn("token_id", "text", (column) => column.notNull())
          .addColumn("transfer_index", integer, (column) => column.notNull())
          .addColumn("from_address", "text", (column) => column.notNull())
          .addColumn("to_address", "text", (column) => column.notNull())
          .addColumn("transferred_at_ms", integer, (column) => column.notNull())
          .addColumn("record_tag", "text", (column) => column.notNull())
          .addPrimaryKeyConstraint("nft_transfers_key", ["token_id", "transfer_index"])
          .execute();
      },
    },
    "0008-dapp-contracts": {
      async up(db: Kysely<unknown>): Promise<void> {
        await db.schema
          .createTable("dapp_contracts")
          .addColumn("position", integer, (column) => column.primaryKey())
          .addColumn("contract_id", "text", (column) => column.notNull().unique())
          .addColumn("name", "text", (column) => column.notNull())
          .addColumn("code_hash", "text", (column) => column.notNull())
          .addColumn("signature", bytes, (column) => column.notNull())
          .addColumn("public_key", bytes, (column) => column.notNull())
          .addColumn("owner", "text", (column) => column.notNull())
          .addColumn("deployed_at_ms", integer, (column) => column.notNull())
          .execute();
      },
    },
    "0009-defi": {
      async up(db: Kysely<unknown>): Promise<void> {
        await db.schema
          .createTable("defi_wallets")
          .addColumn("position", integer, (column) => column.primaryKey())
          .addColumn("wallet_id", "text", (column) => column.notNull().unique())
          .addColumn("threshold", integer, (column) => column.notNull())
          .addColumn("signers", "text", (column) => column.notNull())
          .addColumn("owner", "text", (column) => column.notNull())
          .addColumn("created_at_ms", integer, (column) => column.notNull())
          .addColumn("record_tag", "text", (column) => column.notNull())
          .execute();
        await db.schema
          .createTable("defi_signers")
          .addColumn("wallet_id", "text", (column) => column.notNull())
          .addColumn("address", "text", (column) => column.notNull())
          .addColumn("public_key", bytes, (column) => column.notNull())
          .addColumn("is_kept", integer, (column) => column.notNull())
          .addColumn("record_tag", "text", (column) => column.notNull())
          .addPrimaryKeyConstraint("defi_signers_key", ["wallet_id", "address"])
          .execute();
        await db.schema
          .createTable("defi_proposals")
          .addColumn("position", integer, (column) => column.primaryKey())
          .addColumn("proposal_id", "text", (column) => column.notNull().unique())
          .addColumn("wallet_id", "text", (column) => column.notNull())
          .addColumn("data", bytes, (column) => column.notNull())
          .addColumn("title", "text", (column) => column.notNull())
          .addColumn("threshold", integer, (column) => column.notNull())
          .addColumn("proposal_status", "text", (column) => column.notNull())
          .addColumn("signed_by", "text", (column) => column.notNull())
          .addColumn("owner", "text", (column) => column.notNull())
          .addColumn("created_at_ms", integer, (column) => column.notNull())
          .addColumn("expires_at_ms", integer)
          .addColumn("executed_at_ms", integer)
          .addColumn("record_tag", "text", (column) => column.notNull())
          .execute();
        await createIndex(db, "defi_proposals", ["wallet_id", "position"]);
        await createIndex(db, "defi_proposals", ["proposal_status", "position"]);
        await db.schema
          .createTable("defi_signatures")
          .addColumn("proposal_id", "text", (column) => column.notNull())
          .addColumn("signer", "text", (column) => column.notNull())
          .addColumn("signature", bytes, (column) => column.notNull())
          .addPrimaryKeyConstraint("defi_signatures_key", ["proposal_id", "signer"])
          .execute();
      },
    },
    "0010-blockchain": {
      async up(db: Kysely<unknown>): Promise<void> {
        await db.schema
          .createTable("blockchain_validators")
          .addColumn("position", integer, (column) => column.primaryKey())
          .addColumn("address", "text", (column) => column.notNull().unique())
          .addColumn("name", "text", (column) => column.notNull())
          .addColumn("public_key", bytes, (column) => column.notNull())
          .addColumn("owner", "text", (column) => column.notNull())
          .addColumn("created_at_ms", integer, (column) => column.notNull())
          .addColumn("record_tag", "text", (column) => column.notNull())
          .execute();
        await db.schema
          .createTable("blockchain_blocks")
          .addColumn("block_index", integer, (column) => column.primaryKey())
          .addColumn("prev_hash", "text", (column) => column.notNull())
          .addColumn("data", bytes, (column) => column.notNull())
          .addColumn("timestamp_ms", integer, (column) => column.notNull())
          .addColumn("block_hash", "text", (column) => column.notNull())
          .addColumn("signature", bytes, (column) => column.notNull())
          .addColumn("validator_address", "text", (column) => column.notNull())
          .execute();
        await db.schema
          .createTable("blockchain_head")
          .addColumn("id", integer, (column) => column.primaryKey())
          .addColumn("chain_length", integer, (column) => column.notNull())
          .addColumn("head_hash", "text", (column) => column.notNull())
          .addColumn("record_tag", "text", (column) => column.notNull())
          .execute();
        await db.schema
          .createTable("blockchain_peers")
          .addColumn("position", integer, (column) => column.primaryKey())
          .addColumn("address", "text", (column) => column.notNull().unique())
          .addColumn("is_connected", integer, (column) => column.notNull())
          .addColumn("height", integer)
          .addColumn("last_seen_at_ms", integer)
          .execute();
      },
    },
    "0011-iot": {
      async up(db: Kysely<unknown>): Promise<void> {
        await db.schema
          .createTable("iot_devices")
          .addColumn("position", integer, (column) => column.primaryKey())
          .addColumn("device_id", "text", (column) => column.notNull().unique())
          .addColumn("device_name", "text", (column) => column.notNull())
          .addColumn("device_type", "text", (column) => column.notNull())
          .addColumn("public_key", bytes, (column) => column.notNull())
          .addColumn("is_simulated", integer, (column) => column.notNull())
          .addColumn("vendor_public_key", bytes, (column) => column.notNull())
          .addColumn("owner", "text", (column) => column.notNull())
          .addColumn("registered_at_ms", integer, (column) => column.notNull())
          .addColumn("record_tag", "text", (column) => column.notNull())
          .addColumn("last_seen_at_ms", integer)
          .addColumn("last_sequence", integer)
          .addColumn("firmware_version", integer)
          .addColumn("firmware_hash", "text")
          .addColumn("state_tag", "text", (column) => column.notNull())
          .execute();
        await db.schema
          .createTable("iot_challenges")
          .addColumn("challenge_hash", "text", (column) => column.primaryKey())
          .addColumn("device_id", "text", (column) => column.notNull())
          .addColumn("expires_at_ms", integer, (column) => column.notNull())
          .addColumn("used_at_ms", integer)
          .execute();
        await createIndex(db, "iot_challenges", ["expires_at_ms"]);
      },
    },
    "0012-vpn": {
      async up(db: Kysely<unknown>): Promise<void> {
        await db.schema
          .createTable("vpn_tunnels")
          .addColumn("position", integer, (column) => column.primaryKey())
          .addColumn("tunnel_id", "text", (column) => column.notNull().unique())
          .addColumn("peer_name", "text", (column) => column.notNull())
          .addColumn("address_number", integer, (column) => column.notNull().unique())
          .addColumn("public_key", bytes, (column) => column.notNull())
          .addColumn("is_kept", integer, (column) => column.notNull())
          .addColumn("owner", "text", (column) => column.notNull())
          .addColumn("created_at_ms", integer, (column) => column.notNull())
          .addColumn("record_tag", "text", (column) => column.notNull())
          .execute();
      },
    },
    "0013-owners": {
      async up(db: Kysely<unknown>): Promise<void> {
        await db.schema
          .alterTable("nft_tokens")
          .addColumn("minter", "text", (column) => column.notNull().defaultTo(""))
          .execute();
        await createIndex(db, "nft_tokens", ["minter", "position"]);
        for (const table of ownedTables) {
          // Step 5 made that of the keys.
          if (table !== "kms_keys") await createIndex(db, table, ["owner", "position"]);
          await countByOwner(db, table, []);
        }
        for (const columns of [["key_state"], ["algorithm"], ["key_state", "algorithm"]])
          await countByOwner(db, "kms_keys", columns);
        for (const columns of [["wallet_id"], ["proposal_status"], ["wallet_id", "proposal_status"]])
          await countByOwner(db, "defi_proposals", columns);
      },
    },
    "0014-users": {
      async up(db: Kysely<unknown>): Promise<void> {
        await db.schema
          .createTable("users")
          .addColumn("name", "text", (column) => column.primaryKey())
          .addColumn("role", "text", (column) => column.notNull())
          .addColumn("password_hash", "text", (column) => column.notNull())
          .addColumn("generation", "text", (column) => column.notNull())
          .addColumn("created_at_ms", integer, (column) => column.notNull())
          .addColumn("record_tag", "text", (column) => column.notNull())
          .execute();
      },
    },
    "0015-validator-count": {
      async up(db: Kysely<unknown>): Promise<void> {
        // A new store begins without counts; a back-up brings its own.
        await sql`insert into list_counts (list_name, row_count)
          select 'blockchain_validators', count(*) from blockchain_validators having count(*) > 0`.execute(
          db,
        );
      },
    },
    "0016-contract-tags": {
      async up(db: Kysely<unknown>): Promise<void> {
        // What was deployed before has none: it can not be told from what somebody put there.
        await db.schema
          .alterTable("dapp_contracts")
          .addColumn("record_tag", "text", (column) => column.notNull().defaultTo(""))
          .execute();
      },
    },
    "0017-issuer-key-tags": {
      async up(db: Kysely<unknown>): Promise<void> {
        // The issuer tags what it finds to be its own.
        await db.schema
          .alterTable("issuer_keys")
          .addColumn("record_tag", "text", (column) => column.notNull().defaultTo(""))
          .execute();
      },
    },
    "0018-audit-of-states": {
      async up(db: Kysely<unknown>): Promise<void> {
        // The entries that say in which state a key is, which among many others nobody could look for.
        await sql`create index audit_entries_of_states on audit_entries (key_id, sequence)
          where outcome = 'OK' and operation in ('CREATE', 'ROTATE', 'DESTROY')`.execute(db);
      },
    },
    "0019-user-ids": {
      async up(db: Kysely<unknown>): Promise<void> {
        // Records name their owners by name up to here, so the ID of a user who is there already is the name.
        await db.schema
          .alterTable("users")
          .addColumn("user_id", "text", (column) => column.notNull().defaultTo(""))
          .execute();
        await sql`update users set user_id = name`.execute(db);
        await db.schema.createIndex("users_by_user_id").unique().on("users").columns(["user_id"]).execute();
      },
    },
    "0020-quotas": {
      async up(db: Kysely<unknown>): Promise<void> {
        await db.schema
          .alterTable("iot_challenges")
          .addColumn("issued_to", "text", (column) => column.notNull().defaultTo(""))
          .execute();
        await sql`create index iot_challenges_open on iot_challenges (issued_to, expires_at_ms)
          where used_at_ms is null`.execute(db);
        // What quotas count and lists did not. Nobody knows who connected the peers that are there already.
        const counts = [
          sql`select 'blockchain_validators by=' || owner, count(*) from blockchain_validators group by owner`,
          sql`select 'blockchain_blocks by=' || owner, count(*) from blockchain_blocks
            join blockchain_validators on validator_address = address group by owner`,
          sql`select 'defi_signers by=' || owner, count(*) from defi_signers
            join defi_wallets on defi_wallets.wallet_id = defi_signers.wallet_id group by owner`,
          sql`select 'nft_transfers by=' || minter, count(*) from nft_transfers
            join nft_tokens on nft_tokens.token_id = nft_transfers.token_id group by minter`,
          sql`select 'idempotent_answers by=' || user_name, count(*) from idempotent_answers group by user_name`,
        ];
        for (const count of counts)
          await sql`insert into list_counts (list_name, row_count) ${count}`.execute(db);
      },
    },
    "0021-replay-protection": {
      async up(db: Kysely<unknown>): Promise<void> {
        await db.schema
          .alterTable("iot_devices")
          .addColumn("signing_contexts", integer, (column) => column.notNull().defaultTo(0))
          .execute();
        await db.schema.alterTable("iot_devices").addColumn("reading_form", "text").execute();
        await db.schema
          .alterTable("iot_devices")
          .addColumn("former_images", "text", (column) => column.notNull().defaultTo(""))
          .execute();
        await db.schema
          .createTable("vpn_used_ciphertexts")
          .addColumn("tunnel_id", "text", (column) => column.notNull())
          .addColumn("key_form", "text", (column) => column.notNull())
          .addColumn("ciphertext_hash", "text", (column) => column.notNull().primaryKey())
          .execute();
        await db.schema
          .createIndex("vpn_used_ciphertexts_by_tunnel")
          .on("vpn_used_ciphertexts")
          .columns(["tunnel_id"])
          .execute();
      },
    },
  };
}

/** Tables of step 13 whose rows have an owner and a position. */
const ownedTables = [
  "kms_keys",
  "wallets",
  "dapp_contracts",
  "defi_wallets",
  "defi_proposals",
  "iot_devices",
  "vpn_tunnels",
] as const;

/** Names of filters in the names of lists, by their columns. */
const filterNames: Readonly<Record<string, string>> = {
  key_state: "state",
  algorithm: "algorithm",
  wallet_id: "walletId",
  proposal_status: "status",
};

/** Counts the rows of each owner, for the lists that are filtered by these columns. */
async function countByOwner(db: Kysely<unknown>, table: string, columns: readonly string[]): Promise<void> {
  const filters = columns.flatMap((column) => [sql.lit(` ${filterNames[column]}=`), sql.ref(column)]);
  const parts = [sql.lit(table), ...filters, sql.lit(" by="), sql.ref("owner")];
  const name = sql.join(parts, sql` || `);
  await sql`insert into list_counts (list_name, row_count)
    select ${name}, count(*) from ${sql.table(table)} group by 1`.execute(db);
}

async function createIndex(db: Kysely<unknown>, table: string, columns: string[]): Promise<void> {
  await db.schema
    .createIndex(`${table}_by_${columns.join("_")}`)
    .on(table)
    .columns(columns)
    .execute();
}
