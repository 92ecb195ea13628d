import type { TableOwner } from "../../database/schema.ts";

/** The tables of wallets, signers, proposals and signatures: see store.ts and proposal-store.ts. */
export const defiTables: TableOwner = {
  tables: {
    defi_wallets: ["position"],
    defi_signers: ["wallet_id", "address"],
    defi_proposals: ["position"],
    defi_signatures: ["proposal_id", "signer"],
  },
  steps: {
    "0001-defi": ({ bytes, integer }) => [
      `create table defi_wallets (
        position ${integer} not null primary key,
        wallet_id text not null unique,
        threshold ${integer} not null,
        signers text not null,
        owner text not null,
        created_at_ms ${integer} not null,
        record_tag text not null
      )`,
      "create index defi_wallets_by_owner_position on defi_wallets (owner, position)",
      `create table defi_signers (
        wallet_id text not null,
        address text not null,
        public_key ${bytes} not null,
        is_server_held ${integer} not null,
        record_tag text not null,
        primary key (wallet_id, address)
      )`,
      `create table defi_proposals (
        position ${integer} not null primary key,
        proposal_id text not null unique,
        wallet_id text not null,
        data ${bytes} not null,
        title text not null,
        threshold ${integer} not null,
        proposal_status text not null,
        signed_by text not null,
        owner text not null,
        created_at_ms ${integer} not null,
        expires_at_ms ${integer},
        executed_at_ms ${integer},
        record_tag text not null
      )`,
      "create index defi_proposals_by_owner_position on defi_proposals (owner, position)",
      "create index defi_proposals_by_wallet_id_position on defi_proposals (wallet_id, position)",
      "create index defi_proposals_by_proposal_status_position on defi_proposals (proposal_status, position)",
      `create table defi_signatures (
        proposal_id text not null,
        signer text not null,
        signature ${bytes} not null,
        primary key (proposal_id, signer)
      )`,
    ],
  },
};
