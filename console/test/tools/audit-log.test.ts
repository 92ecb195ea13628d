import { create } from "@bufbuild/protobuf";
import { TimestampSchema, timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { type AuditEntry, AuditEntrySchema } from "#gen/kms/audit_pb.ts";
import { type GetAuditLogRequest, KmsService, WatchAuditLogResponseSchema } from "#gen/kms/kms_service_pb.ts";
import { auditStart, hashAuditEntry } from "../../../src/client/verify-audit.ts";
import { type CheckedEntry, checkEntry, readEntry } from "../../page/audit.ts";
import * as log from "../../page/tools/audit-log/entries.ts";
import { serve } from "../steps/fake-caller.ts";

const now = new Date("2026-11-23T12:00:00Z");

function makeEntries(first: number, count: number): AuditEntry[] {
  return Array.from({ length: count }, (_none, at) => create(AuditEntrySchema, { sequence: first + at }));
}

function sequencesOf(entries: readonly AuditEntry[]): number[] {
  return entries.map(({ sequence }) => sequence);
}

describe("toQuery", () => {
  const timesOf = (filters: Partial<log.AuditFilters>) => {
    const { from, to } = log.toQuery({ ...log.noFilters, ...filters }, now);
    const read = (time: typeof from) => time && timestampDate(create(TimestampSchema, time)).toISOString();
    return [read(from), read(to)];
  };

  it.each([
    ["All time", undefined],
    ["Last hour", "2026-11-23T11:00:00.000Z"],
    ["Last 24 hours", "2026-11-22T12:00:00.000Z"],
    ["Last 7 days", "2026-11-16T12:00:00.000Z"],
  ])("starts %s at %s", (period, from) => {
    const times = timesOf({ period, from: "2020-01-01T00:00", to: "2020-01-01T00:00" });
    expect(times).toEqual([from, undefined]);
  });

  it("accepts both ends of a custom period, in UTC", () => {
    const filters = { period: log.ownPeriod, from: "2026-01-02T03:04", to: "2026-02-03T04:05" };
    expect(timesOf(filters)).toEqual(["2026-01-02T03:04:00.000Z", "2026-02-03T04:05:00.000Z"]);
    expect(timesOf({ ...filters, to: "" })).toEqual(["2026-01-02T03:04:00.000Z", undefined]);
  });
});

it.each([
  ["", ""],
  [" release ", "name/release"],
  ["key-1", "key-1"],
  ["name/release/2", "name/release/2"],
  ["user/ada/name/release", "user/ada/name/release"],
])("toHandle reads “%s” as “%s”", (typed, handle) => {
  expect(log.toHandle(typed)).toBe(handle);
});

it("loadEntries continues with the previous page's token", async () => {
  const asked: GetAuditLogRequest[] = [];
  const caller = serve(KmsService, {
    getAuditLog(request) {
      const start = Number(request.pageToken);
      asked.push(request);
      return {
        auditLog: makeEntries(start + 1, Math.min(request.pageSize, 70 - start)),
        nextPageToken: start === 0 ? String(request.pageSize) : "",
        totalSize: 70,
      };
    },
  });
  const query = log.toQuery({ ...log.noFilters, user: "ada" }, now);
  const first = await log.loadEntries(caller, query);
  const both = await log.loadEntries(caller, query, first);
  expect(sequencesOf(both.items)).toEqual(sequencesOf(makeEntries(1, 70)));
  expect(asked.map(({ user, pageToken, newestFirst }) => [user, pageToken, newestFirst])).toEqual([
    ["ada", "", true],
    ["ada", "50", true],
  ]);
});

async function makeChain(): Promise<AuditEntry[]> {
  let previousHash = auditStart.entryHash;
  const chain: AuditEntry[] = [];
  for (const entry of makeEntries(1, 3)) {
    const timestamp = timestampFromDate(now);
    const entryHash = (await hashAuditEntry({ ...entry, timestamp }, previousHash)) ?? "";
    chain.push({ ...entry, timestamp, entryHash });
    previousHash = entryHash;
  }
  return chain;
}

it.each([
  ["from the first entry on", [1, 2, 3], ["holds", "holds", "holds"]],
  ["from an entry whose predecessor is unknown", [2, 3], ["anchor", "holds"]],
  ["up to an entry after another user's", [1, 3], ["holds", "anchor"]],
])("checkEntry follows the chain %s", async (_what, sequences, links) => {
  const checked: CheckedEntry[] = [];
  for (const entry of (await makeChain()).filter(({ sequence }) => sequences.includes(sequence)))
    checked.push(await checkEntry(entry, checked.at(-1)));
  expect(checked.map(({ link }) => link)).toEqual(links);
});

describe("checkLink", () => {
  async function check(sequence: number, change: (chain: AuditEntry[]) => AuditEntry[]): Promise<string> {
    const chain = change(await makeChain());
    const entry = chain.find((one) => one.sequence === sequence);
    if (entry === undefined) throw new Error("there is no such entry");
    const visible = chain.filter((one) => one.sequence > sequence - 2);
    return log.checkLink(
      entry,
      (async function* () {
        for (const one of visible) yield create(WatchAuditLogResponseSchema, { entry: one });
      })(),
    );
  }

  const changed = (at: number, fields: Partial<AuditEntry>) => (chain: AuditEntry[]) =>
    chain.map((entry) => (entry.sequence === at ? { ...entry, ...fields } : entry));
  const without = (at: number) => (chain: AuditEntry[]) => chain.filter(({ sequence }) => sequence !== at);

  it.each([
    ["accepts an unchanged entry", 2, without(9), "holds"],
    ["accepts the first entry, which has none before it", 1, without(9), "holds"],
    ["finds a changed field", 2, changed(2, { user: "eve" }), "broken"],
    ["finds that the entry before was replaced", 3, changed(2, { entryHash: "0".repeat(64) }), "broken"],
    ["checks nothing if the reader may not see the entry before it", 2, without(1), "anchor"],
  ])("%s", async (_what, sequence, change, link) => {
    expect(await check(sequence, change)).toBe(link);
  });
});

it.each([
  ["", {}],
  ["input=data", { input: "data" }],
  ["usage=SIGN, note=a=1, b, c=d", { usage: "SIGN", note: "a=1, b", c: "d" }],
])("splitDetails splits “%s”", (details, parts) => {
  expect(Object.fromEntries(log.splitDetails(details))).toEqual(parts);
});

it("readEntry rejects a message without an entry", () => {
  expect(() => readEntry({})).toThrow("without an entry");
});

it("the sentence above the entries states the number of entries and their order", () => {
  const list = { items: makeEntries(1, 2), nextPageToken: "next", totalSize: 1234 };
  expect(log.describeList(list)).toBe("2 of 1,234 entries, newest first.");
  expect(log.describeStream(3, true)).toContain("3 entries, newest first");
  expect(log.describeList({ items: [], nextPageToken: "", totalSize: 0 })).toContain("longer period");
});
