import type { TableOwner } from "../../database/schema.ts";
import { column, type ListedRow } from "../../records/columns.ts";
import type { Quota } from "../../records/quota.ts";
import type { TableDeclaration } from "../../records/table-declaration.ts";

const columns = {
  tunnelId: column.text("tunnel_id"),
  peerName: column.text("peer_name"),
  /** The last 16 bits of its address. */
  addressNumber: column.integer("address_number"),
  /** Raw ML-KEM-1024. */
  publicKey: column.bytes("public_key"),
  /** Whether the gateway generated the peer's key pair and stores its secret key. */
  isServerHeld: column.flag("is_server_held"),
  /** The user who registered it. */
  owner: column.text("owner"),
  createdAt: column.time("created_at_ms"),
};

/** The name of the list of all tunnels, in page tokens and counts. */
export const tunnelList = "vpn_tunnels";

/** Counts the tunnels of an owner; each has one of the 65,533 addresses. */
export const tunnelQuota: Quota = { list: tunnelList, noun: "tunnels", kind: "tunnels" };

export const tunnelTable: TableDeclaration<typeof columns> = {
  name: tunnelList,
  columns,
  key: ["tunnelId"],
  owner: "owner",
  quota: tunnelQuota,
  describe: ({ tunnelId }) => `tunnel ${tunnelId}`,
};

declare module "../../database/schema.ts" {
  interface Schema {
    vpn_tunnels: ListedRow<typeof columns>;
    /** The hash is SHA-256. */
    vpn_used_ciphertexts: { tunnel_id: string; key_form: string; ciphertext_hash: string };
  }
}

/** The tables of tunnels and of used ciphertexts: see store.ts and ciphertext-store.ts. */
export const vpnTables: TableOwner = {
  tables: { vpn_tunnels: ["position"], vpn_used_ciphertexts: ["ciphertext_hash"] },
  steps: {
    "0001-vpn": ({ bytes, integer }) => [
      `create table vpn_tunnels (
        position ${integer} not null primary key,
        tunnel_id text not null unique,
        peer_name text not null,
        address_number ${integer} not null unique,
        public_key ${bytes} not null,
        is_server_held ${integer} not null,
        owner text not null,
        created_at_ms ${integer} not null,
        record_tag text not null
      )`,
      "create index vpn_tunnels_by_owner_position on vpn_tunnels (owner, position)",
      `create table vpn_used_ciphertexts (
        tunnel_id text not null,
        key_form text not null,
        ciphertext_hash text not null primary key
      )`,
      "create index vpn_used_ciphertexts_by_tunnel on vpn_used_ciphertexts (tunnel_id)",
    ],
  },
};
