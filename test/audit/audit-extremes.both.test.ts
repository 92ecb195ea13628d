import { expect, it } from "vitest";
import { writeEntries } from "../support/entries.ts";
import { describeStores } from "../support/on-both.ts";

/** The largest integer in both databases; JavaScript numbers cannot represent it. */
const largest = 2n ** 63n - 1n;

const copyLast = (sequence: bigint) =>
  `insert into audit_entries select ${sequence}, key_id, operation, user_name, occurred_at_ms, outcome, details,
    entry_hash, entry_tag, client_address, request_id, owner, key_name from audit_entries where sequence = 8`;

describeStores("verification of a log with numbers too large for JavaScript", (makePlace) => {
  it.each([
    ["an entry's time", 4, `update audit_entries set occurred_at_ms = ${largest} where sequence = 4`],
    ["an entry's sequence", 4, `update audit_entries set sequence = ${largest} where sequence = 4`],
    ["the head's sequence", 9, `update audit_head set sequence = ${largest}`],
    ["a checkpoint's time", 8, `update audit_checkpoints set signed_at_ms = ${largest}`],
    ["a checkpoint's sequence", 9, `update audit_checkpoints set sequence = ${largest}`],
    ["the sequence of an entry added beyond the end", 9, copyLast(largest)],
    ["the sequence of an entry added before the first", 1, copyLast(-largest)],
  ])("reports the first broken entry without failing: %s", async (_what, broken, change) => {
    const place = await makePlace();
    const store = await place.open();
    await writeEntries(store, 8);
    await store.verifyAudit();
    await place.query(change);
    expect(await store.verifyAudit()).toMatchObject({ valid: false, firstBrokenSequence: broken });
  });
});
