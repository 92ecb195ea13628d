import type { TableOwner } from "../../database/schema.ts";

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
