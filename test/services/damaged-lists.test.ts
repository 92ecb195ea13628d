/**
 * How lists show records that were changed directly in the database. Whatever value was put into whichever
 * column, either the record is marked and shows only its ID, or it looks unchanged; the other records are
 * listed as usual.
 */
import { isDeepStrictEqual } from "node:util";
import { type Kysely, sql } from "kysely";
import { describe, expect, it, onTestFinished } from "vitest";
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import type { Schema } from "../../src/database/schema.ts";
import { servicePackages } from "../../src/services/registry.ts";
import { startAccessServer, timeout } from "../access/access-server.ts";
import { allKinds, kinds, lists, type OwnedKind } from "../access/owned-records.ts";
import { nameOf } from "../access/rpc-rows.ts";
import { present } from "./answers.ts";

type Value = string | number | Uint8Array | null;
type Row = Readonly<Record<string, Value>>;

/** A listed record, as a message; `damaged` or a status may mark it. */
interface Listed {
  readonly damaged?: boolean;
  readonly registrationStatus?: string;
}

/** The covered lists. */
const listed: readonly Pick<OwnedKind, "make" | "list" | "stored">[] = [
  ...allKinds.map(([, kind]) => kind),
  { ...kinds.validators, list: lists(BlockchainService.method.listValidators, "validatorAddress") },
  {
    make: async ({ kms }) => {
      const { keyId } = present((await kms.createKey({})).result);
      return present((await kms.createGrant({ keyId, grantee: "ada", operations: ["SIGN"] })).grant).grantId;
    },
    list: lists(KmsService.method.listGrants, "grantId"),
    stored: ["kms_grants", "grant_id", "owner"],
  },
];

/** Columns whose change goes unnoticed, because no tag covers them. */
const unnoticed = ["last_seen_at_ms"];

/** The other lists, and why they are not covered here. */
const otherLists: Readonly<Record<string, string>> = {
  "blockchain.BlockchainService.GetChain": "hashes and signatures protect blocks; VerifyChain checks them",
  "kms.KmsService.ExportPublicKeys": "omits damaged keys; see test/services/kms",
  "kms.KmsService.GetAuditLog": "shows an entry only to its true owner; see test/access/lists.test.ts",
  "pqc.IdentityLogService.GetIdentityLog": "readers of the log verify the chain, as VerifyIdentityLog does",
  "blockchain.BlockchainService.ListPeers":
    "peers have neither an owner nor a tag: each call asks the peer again",
  "nft.NftService.GetHistory": "fails with RECORD_DAMAGED; see nft.both.test.ts",
};

/**
 * Values to put in place of a value: of its type, beyond what a message can carry, and of a different type.
 */
function changesOf(value: string | number | Uint8Array): Readonly<Record<string, Value>> {
  if (typeof value === "string")
    return { longer: `${value}0`, empty: "", bytes: Uint8Array.of(0xff, 0, 0xfe) };
  if (typeof value === "number")
    return {
      more: value + 1,
      "far below 0": -8_999_999_999_999_999,
      "far beyond": 8_999_999_999_999_999,
      text: "x",
    };
  return { others: new Uint8Array(3), empty: new Uint8Array(), text: "text" };
}

async function readFirst(db: Kysely<Schema>, table: keyof Schema): Promise<Row> {
  const { rows } = await sql<Row>`select * from ${sql.table(table)} order by position limit 1`.execute(db);
  return present(rows[0]);
}

async function setFirst(db: Kysely<Schema>, table: keyof Schema, column: string, value: Value) {
  const first = sql`(select min(position) from ${sql.table(table)})`;
  const change = sql`update ${sql.table(table)} set ${sql.ref(column)} = ${value} where position = ${first}`;
  await change.execute(db);
}

describe("a list with a tampered record", { timeout }, () => {
  const cases = listed.flatMap(({ list, ...kind }) =>
    list ? [{ ...kind, list, name: nameOf(list.method) }] : [],
  );

  it.each(cases)(
    "shows only a mark and the ID for a record with any changed column, and other records unchanged: $name",
    async ({ make, list, stored: [table] }) => {
      const server = await startAccessServer({ atEnd: onTestFinished, args: ["--auth", "open"] });
      const clients = server.connect();
      const read = () => list(clients, {});
      await make(clients);
      await make(clients);
      const [before, other] = (await read()).rows;
      const found: Record<string, string> = {};
      await server.tamper(async (db) => {
        const row = await readFirst(db, table);
        for (const [column, value] of Object.entries(row)) {
          if (column === "position" || value === null) continue;
          for (const [what, changed] of Object.entries(changesOf(value))) {
            if (!(await takes(setFirst(db, table, column, changed)))) continue;
            const { rows, ids } = await read();
            const [first, ...others] = rows;
            expect(others).toEqual([other]);
            if (!unnoticed.includes(column))
              found[`${column}: ${what}`] = describeFirst(first, before, ids[0]);
          }
          await setFirst(db, table, column, value);
        }
      });
      expect(Object.entries(found).filter(([, how]) => !["marked", "as it was"].includes(how))).toEqual([]);
      expect(Object.values(found)).toContain("marked");
      expect((await read()).rows).toEqual([before, other]);
    },
  );

  it("is tested with every core list of records", () => {
    const methods = servicePackages.flatMap(({ files }) =>
      files.flatMap((file) => file.services.flatMap((service) => service.methods)),
    );
    const all = methods.filter(({ input }) => input.fields.some(({ name }) => name === "page_token"));
    expect([...cases.map(({ name }) => name), ...Object.keys(otherLists)].sort()).toEqual(
      all.map(nameOf).sort(),
    );
  });
});

/** Returns whether the database accepts a change: PostgreSQL checks types, and both check unique values. */
function takes(change: Promise<void>): Promise<boolean> {
  return change.then(
    () => true,
    () => false,
  );
}

function describeFirst(changed: Listed | undefined, before: Listed | undefined, id: unknown): string {
  if (changed?.damaged || changed?.registrationStatus === "DAMAGED") {
    const { damaged: _, registrationStatus: __, ...rest } = changed;
    const shown = listContents(rest, id);
    return shown.length === 0 ? "marked" : `marked, with its ${shown.join(", ")}`;
  }
  return isDeepStrictEqual(changed, before) ? "as it was" : "not noticed";
}

/** Lists the fields of a message that have a value, except its ID. */
function listContents(message: object, id: unknown): string[] {
  const hasContent = (value: unknown): boolean =>
    typeof value === "object" && value !== null ? Object.keys(value).length > 0 : Boolean(value);
  const fields = Object.entries(message).filter(([name, value]) => name !== "$typeName" && value !== id);
  return fields.filter(([, value]) => hasContent(value)).map(([name]) => name);
}
