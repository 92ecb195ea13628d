import { column, type ListedRow } from "../../src/records/columns.ts";
import { createRecordTable } from "../../src/records/create-table.ts";
import type { RecordTables, TableDeclaration } from "../../src/records/table-declaration.ts";

const columns = {
  tunnelId: column.text("tunnel_id"),
  /** X25519 public key, 32 bytes. WireGuard identifies a peer by it, so two tunnels cannot share one. */
  wireguardKey: column.unique(column.bytes("wireguard_key")),
  /** Epoch of the last confirmed key; 0 if none. */
  lastEpoch: column.integer("last_epoch"),
  /** Owner of the tunnel. */
  owner: column.text("owner"),
  createdAt: column.time("created_at_ms"),
};

/** WireGuard keys of tunnels. Each tunnel has at most one, so the quota of tunnels limits them too. */
export const peerTable: TableDeclaration<typeof columns> = {
  name: "wireguard_peers",
  columns,
  key: ["tunnelId"],
  owner: "owner",
  describe: ({ tunnelId }) => `WireGuard key of tunnel ${tunnelId}`,
};

declare module "../../src/database/schema.ts" {
  interface Schema {
    wireguard_peers: ListedRow<typeof columns>;
  }
}

export const wireguardTables: RecordTables = {
  records: [peerTable],
  tables: { wireguard_peers: ["position"] },
  steps: {
    "0009-wireguard": (types) => [
      createRecordTable(types, peerTable),
      "create index wireguard_peers_by_owner_position on wireguard_peers (owner, position)",
    ],
  },
};
