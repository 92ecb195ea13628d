import type { TableOwner } from "../database/schema.ts";

/** A secret that only the master key can open; see crypto/sealing.ts. */
export interface SealedSecretsTable {
  /** Identity of the record, such as "issuer_keys/<key_id>/seed"; bound to the ciphertext. */
  identity: string;
  /** ID of the master key that wrapped the data key. */
  master_key_id: string;
  wrapped_data_key: Uint8Array;
  ciphertext: Uint8Array;
}

declare module "../database/schema.ts" {
  interface Schema {
    sealed_secrets: SealedSecretsTable;
  }
}

export const secretTables: TableOwner = {
  tables: { sealed_secrets: ["identity"] },
  steps: {
    "0001-secrets": ({ bytes }) => [
      `create table sealed_secrets (
        identity text not null primary key,
        master_key_id text not null,
        wrapped_data_key ${bytes} not null,
        ciphertext ${bytes} not null
      )`,
      "create index sealed_secrets_by_master_key_id_identity on sealed_secrets (master_key_id, identity)",
    ],
  },
};
