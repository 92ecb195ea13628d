import { readFileSync } from "node:fs";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { TimestampSchema, timestampDate } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { type AuditEntry, AuditEntrySchema } from "#gen/kms/audit_pb.ts";
import { type GetAuditLogRequest, KmsService } from "#gen/kms/kms_service_pb.ts";
import { readEntry } from "../../page/audit.ts";
import * as log from "../../page/tools/audit-log/entries.ts";
import { createFakeCaller } from "../steps/fake-caller.ts";

const now = new Date("2026-11-23T12:00:00Z");

function makeEntries(first: number, count: number): AuditEntry[] {
  return Array.from({ length: count }, (_none, at) => create(AuditEntrySchema, { sequence: first + at }));
}

function sequencesOf(entries: readonly AuditEntry[]): number[] {
  return entries.map(({ sequence }) => sequence);
}

describe("the filter's operations", () => {
  it("match GetAuditLog", () => {
    const proto = readFileSync(join(import.meta.dirname, "../../../proto/kms/kms_service.proto"), "utf8");
    const [, list = ""] = /message GetAuditLogRequest[\s\S]*?in: \[([\s\S]*?)\]/.exec(proto) ?? [];
    expect(log.operations).toEqual(list.match(/\w+/g));
  });
});

describe("toQuery", () => {
  const timesOf = (filters: Partial<log.AuditFilters>) => {
    const { from, to } = log.toQuery({ ...log.noFilters, ...filters }, now);
    const read = (time: typeof from) => time && timestampDate(create(TimestampSchema, time)).toISOString();
    return [read(from), read(to)];
  };

  for (const [period, from] of [
    ["All time", undefined],
    ["Last hour", "2026-11-23T11:00:00.000Z"],
    ["Last 24 hours", "2026-11-22T12:00:00.000Z"],
    ["Last 7 days", "2026-11-16T12:00:00.000Z"],
  ] as const)
    it(`starts ${period} at ${from ?? "the first entry"}`, () => {
      expect(timesOf({ period, from: "2020-01-01T00:00", to: "2020-01-01T00:00" })).toEqual([
        from,
        undefined,
      ]);
    });

  it("accepts both ends of a custom period, in UTC", () => {
    const filters = { period: log.ownPeriod, from: "2026-01-02T03:04", to: "2026-02-03T04:05" };
    expect(timesOf(filters)).toEqual(["2026-01-02T03:04:00.000Z", "2026-02-03T04:05:00.000Z"]);
    expect(timesOf({ ...filters, to: "" })).toEqual(["2026-01-02T03:04:00.000Z", undefined]);
  });
});

describe("toHandle", () => {
  for (const [typed, handle] of [
    ["", ""],
    [" release ", "name/release"],
    ["key-1", "key-1"],
    ["name/release/2", "name/release/2"],
    ["user/ada/name/release", "user/ada/name/release"],
  ] as const)
    it(`reads “${typed}” as “${handle}”`, () => {
      expect(log.toHandle(typed)).toBe(handle);
    });
});

describe("loadEntries", () => {
  it("continues with the previous page's token", async () => {
    const asked: GetAuditLogRequest[] = [];
    const caller = createFakeCaller(({ service }) =>
      service(KmsService, {
        getAuditLog(request) {
          asked.push(request);
          return {
            auditLog: makeEntries(asked.length, 1),
            nextPageToken: asked.length === 1 ? "next" : "",
            totalSize: 2,
          };
        },
      }),
    );
    const query = log.toQuery({ ...log.noFilters, user: "ada" }, now);
    const first = await log.loadEntries(caller, query);
    const both = await log.loadEntries(caller, query, first);
    expect(sequencesOf(both.entries)).toEqual([1, 2]);
    expect(asked.map(({ user, pageToken }) => [user, pageToken])).toEqual([
      ["ada", ""],
      ["ada", "next"],
    ]);
  });
});

describe("mergeEntries", () => {
  it("appends new entries to the known ones, each once", () => {
    expect(sequencesOf(log.mergeEntries(makeEntries(1, 3), makeEntries(3, 2)))).toEqual([1, 2, 3, 4]);
  });

  it("keeps the newest", () => {
    const kept = log.mergeEntries(makeEntries(1, 400), makeEntries(401, 400));
    expect([kept.length, kept[0]?.sequence, kept.at(-1)?.sequence]).toEqual([500, 301, 800]);
  });
});

describe("splitDetails", () => {
  for (const [details, parts] of [
    ["", []],
    ["input=data", ["input=data"]],
    ["usage=SIGN, note=a, b, c=d", ["usage=SIGN", "note=a, b", "c=d"]],
  ] as const)
    it(`splits “${details}” into ${parts.length}`, () => {
      expect(log.splitDetails(details)).toEqual(parts);
    });
});

describe("readEntry", () => {
  it("rejects a message without an entry", () => {
    expect(() => readEntry({})).toThrow("without an entry");
  });
});

describe("the sentence above the entries", () => {
  it("states the number of entries and their order", () => {
    const list = { entries: makeEntries(1, 2), nextPageToken: "next", totalSize: 1234 };
    expect(log.describeList(list)).toBe("2 of 1,234 entries, oldest first.");
    expect(log.describeStream(3, true)).toContain("3 entries, newest first");
  });

  it("suggests what to do if none match", () => {
    expect(log.describeList({ entries: [], nextPageToken: "", totalSize: 0 })).toContain("longer period");
  });
});
