/** Finds the master keys that a store needs and checks whether the available keys open it. */
import type { Kysely } from "kysely";
import type { Schema } from "../database/schema.ts";
import type { Keyring } from "./master-key.ts";
import { createVault, opens, rootIdentity } from "./vault.ts";

/** Number of secrets sealed with one master key. */
export interface SecretsUnderKey {
  readonly masterKeyId: string;
  readonly secrets: number;
}

/** Counts a store's secrets by master key. During a rotation, several keys are in use. */
export async function countByMasterKey(db: Kysely<Schema>): Promise<SecretsUnderKey[]> {
  const rows = await db
    .selectFrom("sealed_secrets")
    .select(["master_key_id", (row) => row.fn.countAll<number>().as("count")])
    .groupBy("master_key_id")
    .orderBy("master_key_id")
    .execute();
  return rows.map(({ master_key_id, count }) => ({ masterKeyId: master_key_id, secrets: count }));
}

/** Returns whether a store opens with these keys, as a starting server would open it. */
export async function opensStore(db: Kysely<Schema>, keyring: Keyring): Promise<boolean> {
  // A store that was never used has no root key yet, so any master key opens it.
  return (await opens(createVault(keyring).read(db, rootIdentity))) ?? true;
}
