import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import canonicalize from "canonicalize";
import { describe, expect, it } from "vitest";
import { type AuditEntry, AuditEntrySchema } from "#gen/kms/audit_pb.ts";
import { type CheckedEntry, checkEntry } from "../page/audit.ts";

/** Entries as a server would write them, hashed with independent code. */
function makeChain(count: number, numberOf = (at: number) => at + 1): AuditEntry[] {
  let previousHash = "0".repeat(64);
  return Array.from({ length: count }, (_none, at) => {
    const fields = {
      keyId: "key-1",
      operation: "SIGN",
      user: 'ada "the first" \u2028 é',
      details: "input=data",
      sequence: numberOf(at),
      outcome: "OK",
    };
    const timestamp = new Date(1_790_000_000_000 + at);
    const canonical = canonicalize({ ...fields, timestamp: timestamp.toISOString(), previousHash }) ?? "";
    previousHash = createHash("sha256").update(canonical).digest("hex");
    return create(AuditEntrySchema, {
      ...fields,
      timestamp: timestampFromDate(timestamp),
      entryHash: previousHash,
    });
  });
}

async function linksOf(entries: readonly AuditEntry[]): Promise<string[]> {
  const checked: CheckedEntry[] = [];
  for (const entry of entries) checked.push(await checkEntry(entry, checked.at(-1)));
  return checked.map(({ link }) => link);
}

describe("the audit chain, as checked by the page", () => {
  it("holds from its first entry on", async () => {
    expect(await linksOf(makeChain(3))).toEqual(["holds", "holds", "holds"]);
  });

  it("holds from an unchecked first entry if the earlier entries are unknown", async () => {
    expect(await linksOf(makeChain(4).slice(1))).toEqual(["anchor", "holds", "holds"]);
  });

  it("is broken if an entry is missing", async () => {
    expect(await linksOf(makeChain(3).toSpliced(1, 1))).toEqual(["holds", "broken"]);
  });

  it("is broken if a sequence number is skipped, even if the hashes chain", async () => {
    expect(await linksOf(makeChain(2, (at) => 2 * at + 1))).toEqual(["holds", "broken"]);
  });

  const changes: Record<string, (entry: AuditEntry) => void> = {
    keyId: (entry) => {
      entry.keyId = "key-2";
    },
    operation: (entry) => {
      entry.operation = "VERIFY";
    },
    user: (entry) => {
      entry.user = "eve";
    },
    timestamp: (entry) => {
      entry.timestamp = timestampFromDate(new Date(0));
    },
    details: (entry) => {
      entry.details = "";
    },
    sequence: (entry) => {
      entry.sequence = 3;
    },
    outcome: (entry) => {
      entry.outcome = "REFUSED";
    },
    entryHash: (entry) => {
      entry.entryHash = entry.entryHash.replace(/^./, (digit) => (digit === "0" ? "1" : "0"));
    },
  };
  for (const [name, change] of Object.entries(changes)) {
    it(`is broken if an entry has a different ${name}`, async () => {
      const [first, second] = makeChain(2);
      if (first === undefined || second === undefined) throw new Error("the chain is too short");
      change(second);
      expect(await linksOf([first, second])).toEqual(["holds", "broken"]);
    });
  }
});
