/** How Google's lists show a record that was modified directly in the database. */
import { sql } from "kysely";
import { expect, it } from "vitest";
import type { Schema } from "../../../src/database/schema.ts";
import { refusal } from "../../../test/support/refusal.ts";
import { damaged } from "../../../test/support/refusals.ts";
import { createJob, describeGoogle, google, kem } from "./google-server.ts";

const location = "projects/p/locations/global";

interface Named {
  readonly name: string;
}

/** The answer of a list call, which has one list. */
interface Page {
  readonly totalSize: number;
}

const recordsOf = (page: Page): readonly Named[] => Object.values(page).find(Array.isArray) ?? [];

interface List {
  readonly table: keyof Schema;
  /**
   * Creates a record.
   *
   * @returns its name
   */
  readonly make: (ring: string, id: string) => Promise<string>;
  readonly read: (ring: string, filter: string) => Promise<Page>;
  readonly get: (name: string) => Promise<unknown>;
  readonly refused?: { readonly code: string; readonly reason: string };
}

const lists: Readonly<Record<string, List>> = {
  ListKeyRings: {
    table: "google_key_rings",
    make: async (ring, id) =>
      (await google.createKeyRing({ parent: location, keyRingId: `${ring.split("/").at(-1)}-${id}` })).name,
    read: (_ring, filter) => google.listKeyRings({ parent: location, filter }),
    get: (name) => google.getKeyRing({ name }),
  },
  ListCryptoKeys: {
    table: "kms_names",
    make: async (parent, cryptoKeyId) =>
      (await google.createCryptoKey({ parent, cryptoKeyId, cryptoKey: kem })).name,
    read: (parent, filter) => google.listCryptoKeys({ parent, filter }),
    get: (name) => google.getCryptoKey({ name }),
  },
  ListCryptoKeyVersions: {
    table: "kms_keys",
    async make(parent, id) {
      const name = `${parent}/cryptoKeys/versions`;
      if (id === "one") {
        await google.createCryptoKey({ parent, cryptoKeyId: "versions", cryptoKey: kem });
        return `${name}/cryptoKeyVersions/1`;
      }
      return (await google.createCryptoKeyVersion({ parent: name })).name;
    },
    read: (ring, filter) => google.listCryptoKeyVersions({ parent: `${ring}/cryptoKeys/versions`, filter }),
    get: (name) => google.getCryptoKeyVersion({ name }),
    refused: { code: "DataLoss", reason: "KEY_DAMAGED" },
  },
  ListImportJobs: {
    table: "kms_imports",
    make: async (parent, id) => (await createJob(parent, id)).name,
    read: (parent, filter) => google.listImportJobs({ parent, filter }),
    get: (name) => google.getImportJob({ name }),
  },
};

describeGoogle("a list with a record that was modified in the database", (shared) => {
  it.each(Object.entries(lists))("shows only its name, and the others unchanged: %s", async (name, list) => {
    const { tamper } = await shared();
    const { table, make, read, get, refused = damaged } = list;
    const ring = (await google.createKeyRing({ parent: location, keyRingId: name })).name;
    const changed = await make(ring, "one");
    const other = await make(ring, "two");
    const before = await read(ring, "");
    const shown = recordsOf(before).find((record) => record.name === other);
    await tamper((db) =>
      sql`update ${sql.table(table)} set created_at_ms = created_at_ms + 1 where position =
      (select max(position) - 1 from ${sql.table(table)})`.execute(db),
    );

    const after = await read(ring, "");
    const records = recordsOf(after);
    const fields = Object.entries(records.find((record) => record.name === changed) ?? {});
    const isEmpty = (value: unknown) =>
      typeof value === "object" && value !== null ? Object.keys(value).length <= 1 : !value;
    expect(fields.filter(([field, value]) => !field.startsWith("$") && !isEmpty(value))).toEqual([
      ["name", changed],
    ]);
    expect(records.find((record) => record.name === other)).toEqual(shown);
    expect(after.totalSize).toBe(before.totalSize);
    // A match would reveal the record's fields.
    const matching = await read(ring, 'createTime>"2020-01-01T00:00:00Z"');
    const found = recordsOf(matching).map((record) => record.name);
    expect(found).toContain(other);
    expect(found).not.toContain(changed);
    expect(await refusal(get(changed))).toEqual(refused);
  });
});
