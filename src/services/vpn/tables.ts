import { sql } from "kysely";
import { column, type ListedRow, type RowOf } from "../../records/columns.ts";
import { createRecordTable, createTable } from "../../records/create-table.ts";
import type { Quota } from "../../records/quota.ts";
import type { RecordTables, TableDeclaration } from "../../records/table-declaration.ts";
import type { ServiceSecrets } from "../../secrets/service-secrets.ts";

const columns = {
  tunnelId: column.text("tunnel_id"),
  peerName: column.text("peer_name"),
  /** Last 16 bits of the peer's address. */
  addressNumber: column.unique(column.integer("address_number")),
  /** Raw ML-KEM-1024. */
  publicKey: column.bytes("public_key"),
  /** Whether the gateway generated the peer's key pair and stores its secret key. */
  isServerHeld: column.flag("is_server_held"),
  /** User who registered the peer. */
  owner: column.text("owner"),
  createdAt: column.time("created_at_ms"),
};

/** Quota for an owner's tunnels; each uses one of 65,533 addresses. */
export const tunnelQuota: Quota = { list: "vpn_tunnels", noun: "tunnels", kind: "tunnels" };

export const tunnelTable: TableDeclaration<typeof columns> = {
  name: "vpn_tunnels",
  columns,
  key: ["tunnelId"],
  owner: "owner",
  quota: tunnelQuota,
  hasSecret: ({ isServerHeld }) => isServerHeld,
  describe: ({ tunnelId }) => `tunnel ${tunnelId}`,
};

const ciphertextTable = {
  name: "vpn_used_ciphertexts",
  columns: {
    tunnelId: column.text("tunnel_id"),
    keyForm: column.text("key_form"),
    /** SHA-256. */
    ciphertextHash: column.text("ciphertext_hash"),
  },
  key: ["ciphertextHash"],
} as const;

/** Seed of the gateway's ML-DSA-65 key (FIPS 204, algorithm 1). */
export const identitySecret = {
  identity: "vpn/gateway/identity-key",
  record: "identity of the gateway",
  bytes: 32,
};

/** Seed of the gateway's ML-KEM-1024 key: d and z (FIPS 203, section 7.1). */
export const kemSecret = {
  identity: "vpn/gateway/kem-key",
  record: "key exchange key of the gateway",
  bytes: 64,
};

export const gatewaySecrets: ServiceSecrets = {
  secrets: [identitySecret, kemSecret],
  uses: sql`select 1 from vpn_tunnels`,
};

declare module "../../database/schema.ts" {
  interface Schema {
    vpn_tunnels: ListedRow<typeof columns>;
    vpn_used_ciphertexts: RowOf<typeof ciphertextTable.columns>;
  }
}

/** Tables for tunnels and used ciphertexts: see store.ts and ciphertext-store.ts. */
export const vpnTables: RecordTables = {
  records: [tunnelTable],
  serviceSecrets: [gatewaySecrets],
  tables: { vpn_tunnels: ["position"], vpn_used_ciphertexts: ["ciphertext_hash"] },
  steps: {
    "0001-vpn": (types) => [
      createRecordTable(types, tunnelTable),
      "create index vpn_tunnels_by_owner_position on vpn_tunnels (owner, position)",
      createTable(types, ciphertextTable),
      "create index vpn_used_ciphertexts_by_tunnel on vpn_used_ciphertexts (tunnel_id)",
    ],
  },
};
