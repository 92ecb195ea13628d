/**
 * Verifies a log of a million entries within the deadline of a call. Writing it takes minutes on a busy
 * machine.
 */
import { expect, it } from "vitest";
import { writeLongLog } from "../../support/long-log.ts";
import { describeKms } from "./kms-server.ts";

const entries = 1_000_000;

describeKms("a log of a million entries", ({ start }) => {
  it("is verified within one call", { timeout: 900_000 }, async () => {
    const { kms, store } = await start();
    await writeLongLog(store, entries);
    expect(await kms.verifyAuditLog({})).toMatchObject({ valid: true, entries, verifiedFrom: 1 });
    // A longer log continues where that verification ended.
    await writeLongLog(store, 10);
    expect(await kms.verifyAuditLog({})).toMatchObject({ valid: true, entries: entries + 10 });
    const messages = await Array.fromAsync(kms.watchAuditVerification({}));
    expect(messages.length).toBeGreaterThan(10);
    expect(messages.at(-1)?.result).toMatchObject({ valid: true, verifiedFrom: 1 });
  });
});
