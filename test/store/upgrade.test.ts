/** A store of the version before names, grants and filters: it opens, and its keys and its log are whole. */
import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { auditTables } from "../../src/audit/tables.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import type { TableOwner } from "../../src/database/schema.ts";
import { tableOwners } from "../../src/open-store.ts";
import { masterKeyIn } from "../../src/secrets/master-key.ts";
import { kmsTables } from "../../src/services/kms/migrations.ts";
import { openStoreOf } from "../../src/store/open-store-of.ts";
import { describeStores } from "../support/on-both.ts";

const added = [
  "kms_names",
  "kms_grants",
  "kms_imports",
  "google_key_rings",
  "oauth_clients",
  "revoked_tokens",
  ...["identity_entries", "identity_head", "identity_checkpoints"],
  ...["tlog_hashes", "tlog_checkpoints", "tlog_cosignatures"],
];

/** The tables as the first steps make them. */
const before: TableOwner[] = tableOwners.map((owner) => ({
  ...owner,
  tables: Object.fromEntries(Object.entries(owner.tables).filter(([name]) => !added.includes(name))),
  steps: Object.fromEntries(Object.entries(owner.steps).filter(([name]) => name.startsWith("0001-"))),
}));

describeStores("a store of the version before", (makePlace) => {
  it("gets the new tables and columns, and keeps its rows", async () => {
    const place = await makePlace();
    const provider = await createCryptoProvider("openssl");
    const { location, directory } = place;
    const old = await openStoreOf({ owners: before, location, masterKey: masterKeyIn(directory), provider });
    await old.close();
    await provider.close();
    await place.query("insert into list_counts (list_name, row_count) values ('an older list', 7)");
    const store = await place.open();
    const rows = await place.query("select row_count from list_counts where list_name = 'an older list'");
    expect(rows).toMatchObject([{ row_count: 7 }]);
    for (const table of added)
      expect(await place.query(`select count(*) as n from ${table}`)).toHaveLength(1);
    await store.write(async ({ audit }) => {
      audit({
        keyId: randomUUID(),
        operation: "SIGN",
        user: "ada",
        outcome: "OK",
        details: "",
        owner: "ada",
      });
    });
    expect(await store.verifyAudit()).toMatchObject({ valid: true, entries: 1 });
    // What was before the log of identities has no entries there.
    expect(await store.verifyIdentityLog()).toMatchObject({ valid: true, entries: 0 });
  });

  it("was changed by steps that come after all of the first ones, in their order by name", () => {
    const names = tableOwners.flatMap(({ steps }) => Object.keys(steps)).sort();
    const first = names.filter((name) => name.startsWith("0001-"));
    expect(names.slice(0, first.length)).toEqual(first);
    const steps = [...Object.keys(auditTables.steps), ...Object.keys(kmsTables.steps)];
    expect(steps.filter((name) => name.startsWith("0002-"))).toEqual(["0002-audit", "0002-kms"]);
    expect(first).not.toContain("0001-google-kms");
  });
});
