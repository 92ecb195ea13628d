/** The secrets of a service itself, such as the gateway's keys. They are created when it first starts. */
import { randomBytes } from "node:crypto";
import { type Kysely, type RawBuilder, sql } from "kysely";
import { wipe } from "../crypto/bytes.ts";
import type { Reader } from "../database/database.ts";
import type { Schema } from "../database/schema.ts";

/** Random bytes, such as the seed of a key. */
export interface ServiceSecret {
  /** The secret's identity in the vault. */
  readonly identity: string;
  /** Name for people, such as "identity of the gateway". */
  readonly record: string;
  readonly bytes: number;
}

/** Secrets that are created together. */
export interface ServiceSecrets {
  readonly secrets: readonly ServiceSecret[];
  /** Selects rows that exist only after the secrets were created. */
  readonly uses: RawBuilder<unknown>;
}

/** What the creation of secrets needs of the store. */
export interface ServiceSecretStore {
  readonly reader: Reader;
  write(
    work: (transaction: {
      readonly db: Kysely<Schema>;
      putSecret(identity: string, secret: Uint8Array): Promise<void>;
    }) => Promise<void>,
  ): Promise<void>;
}

/**
 * Creates the secrets in a new store. If several programs start at once, one creates them. It does not replace a
 * missing secret, because clients rely on the keys that they know.
 */
export async function createServiceSecrets(store: ServiceSecretStore, group: ServiceSecrets): Promise<void> {
  if (await wereCreated(store.reader, group)) return;
  await store.write(async ({ db, putSecret }) => {
    if (await wereCreated(db, group)) return;
    for (const { identity, bytes } of group.secrets) {
      const fresh = randomBytes(bytes);
      await putSecret(identity, fresh).finally(() => wipe(fresh));
    }
  });
}

async function wereCreated(db: Kysely<Schema>, { secrets, uses }: ServiceSecrets): Promise<boolean> {
  const identities = secrets.map(({ identity }) => identity);
  const { rows } = await sql`
    select 1 where exists (${uses})
      or exists (select 1 from sealed_secrets where identity in (${sql.join(identities)}))`.execute(db);
  return rows.length > 0;
}

/** Finds secrets that are missing although they were created. */
export async function findMissing(db: Kysely<Schema>, group: ServiceSecrets): Promise<ServiceSecret[]> {
  if (!(await wereCreated(db, group))) return [];
  const identities = group.secrets.map(({ identity }) => identity);
  const rows = await db
    .selectFrom("sealed_secrets")
    .select("identity")
    .where("identity", "in", identities)
    .execute();
  return group.secrets.filter(({ identity }) => !rows.some((row) => row.identity === identity));
}
