/** The chapters of a story that look back on it. */
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import type { Stage } from "./kms-story.ts";
import { computeHashes, isSignatureOf, rawKeyOf, toCanonicalJson } from "./outside.ts";

/** "SIGN", and for what was refused "SIGN reason=KEY_STATE_INVALID". */
function summarize({ operation, outcome, details }: AuditEntry): string {
  return outcome === "OK" ? operation : `${operation} ${outcome} ${details}`;
}

const stateRefuses = "REFUSED reason=KEY_STATE_INVALID";

/** Everything that the story did with the invoices key. */
const ofInvoices = [
  "CREATE",
  ...["SIGN", "SIGN", "SIGN"], // Data, with context, mu.
  ...["SIGN", "SIGN", "SIGN REFUSED reason=FIELD_INVALID"], // A batch, and one with an empty message.
  "SIGN", // A JWS.
  ...["SIGN", "VERIFY", "VERIFY", "VERIFY", "VERIFY"],
  // Further refusals to sign are counted.
  ...["SIGN", "ROTATE", `SIGN ${stateRefuses}`, `ROTATE ${stateRefuses}`, "VERIFY"],
  ...["DESTROY", `VERIFY ${stateRefuses}`, `DESTROY ${stateRefuses}`],
];

export function tellOfAudit({ kms, past, key, unknownKeyId, watch, watched }: Stage): void {
  describe("the audit log", () => {
    let entries: AuditEntry[] = [];

    it("tells all that was done with a key and what was refused, in order", async () => {
      const { auditLog, totalSize } = await kms.getAuditLog({ keyId: key("invoices").keyId });
      // Each server has an entry for the first of equal refusals.
      const isFirst = (line: string, i: number, lines: string[]) =>
        !line.includes("REFUSED") || lines.indexOf(line) === i;
      expect(auditLog.map(summarize).filter(isFirst)).toEqual(ofInvoices);
      expect(totalSize).toBe(auditLog.length);
    });

    it("tells what was tried with a key that is not there", async () => {
      const { auditLog } = await kms.getAuditLog({ keyId: unknownKeyId });
      const ofStory = auditLog.filter(({ sequence }) => sequence > past().entries);
      expect(ofStory.map(summarize)).toEqual([
        "SIGN REFUSED reason=KEY_NOT_FOUND",
        "DESTROY REFUSED reason=KEY_NOT_FOUND",
      ]);
    });

    it("can be read in pages, and counts its entries from 1 without gaps", async () => {
      const { totalSize } = await kms.getAuditLog({ pageSize: 1 });
      const pageSize = Math.ceil(totalSize / 2.5);
      const first = await kms.getAuditLog({ pageSize });
      const second = await kms.getAuditLog({ pageSize, pageToken: first.nextPageToken });
      const last = await kms.getAuditLog({ pageSize, pageToken: second.nextPageToken });
      entries = [first, second, last].flatMap(({ auditLog }) => auditLog);
      expect([first, second].map(({ auditLog }) => auditLog.length)).toEqual([pageSize, pageSize]);
      expect(last).toMatchObject({ nextPageToken: "", totalSize });
      expect(entries.map(({ sequence }) => sequence)).toEqual(
        Array.from({ length: totalSize }, (_, i) => i + 1),
      );
    });

    it("is a chain whose hashes come out the same outside", () => {
      expect(computeHashes(entries)).toEqual(entries.map(({ entryHash }) => entryHash));
      expect(entries.length).toBeGreaterThan(past().entries + ofInvoices.length);
    });

    it("is found whole by VerifyAuditLog, which signs where it ends", async () => {
      const last = entries.at(-1);
      const { checkpoint, ...found } = await kms.verifyAuditLog({});
      expect(found).toMatchObject({
        valid: true,
        entries: entries.length,
        head: last?.entryHash,
        reason: "",
      });
      expect(found.firstBrokenSequence).toBeUndefined();
      const { statement = "", signature, publicKey, publicKeyPem, signedAt } = checkpoint ?? {};
      expect(isSignatureOf(publicKeyPem, signature, Buffer.from(statement))).toBe(true);
      expect(publicKey).toEqual(rawKeyOf(publicKeyPem));
      expect(statement).toBe(
        toCanonicalJson({
          purpose: "audit checkpoint",
          sequence: entries.length,
          entryHash: last?.entryHash ?? "",
          signedAt: signedAt ? timestampDate(signedAt).toISOString() : "",
        }),
      );
    });

    it("was told to a watcher entry by entry, as GetAuditLog has it", async () => {
      // The first one was told in the first test.
      const expected = entries.slice(past().entries + 1);
      expect(await take(watched, expected.length)).toEqual(expected);
    });

    it("is told to a watcher of one key from where he was cut off", async () => {
      const { keyId } = key("invoices");
      const [last, ...rest] = entries.filter((entry) => entry.keyId === keyId).slice(10);
      const resumed = watch({ keyId, afterSequence: last?.sequence ?? 0 });
      expect(await take(resumed, rest.length)).toEqual(rest);
      expect(rest.length).toBeGreaterThanOrEqual(ofInvoices.length - 11);
    });

    it("is told to a watcher who names no place from the next entry on", async () => {
      const { keyId } = key("letter 2");
      let told: AuditEntry | undefined;
      const listening = take(watch({}), 1).then(([entry]) => {
        told = entry;
      });
      // An outside observer cannot see when a watch begins.
      const signUntilTold = async (): Promise<boolean> => {
        await kms.sign({ keyId, data: Buffer.from("hello") });
        return told !== undefined;
      };
      await expect.poll(signUntilTold).toBe(true);
      await listening;
      expect(told).toMatchObject({ keyId, operation: "SIGN" });
      expect(told?.sequence).toBeGreaterThan(entries.length);
    });
  });
}

/** The next entries that a watcher is told. */
async function take(watcher: AsyncGenerator<AuditEntry>, count: number): Promise<AuditEntry[]> {
  const told: AuditEntry[] = [];
  while (told.length < count) {
    const { value, done } = await watcher.next();
    if (done === true) throw new Error(`the watcher was told ${told.length} of ${count} entries`);
    told.push(value);
  }
  return told;
}

export function tellOfHealth({ kms, past }: Stage): void {
  describe("GetHealth", () => {
    it("tells that the service is up, and how many keys it holds, destroyed ones included", async () => {
      expect(await kms.getHealth({})).toMatchObject({
        serviceStatus: "UP",
        keyCount: past().keys.length + 11,
      });
    });
  });
}
