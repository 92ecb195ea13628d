/** The log tables: what must never change, and what reading them costs. */
import { expect, it, onTestFinished } from "vitest";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import { writeEntries } from "../../../test/support/entries.ts";
import { describeStores } from "../../../test/support/on-both.ts";
import { pinSteps } from "../../../test/support/pin-steps.ts";
import { openCounted } from "../../../test/support/thread-messages.ts";
import { tlogTables } from "../tables.ts";
import { verifyAudit } from "../verify-audit.ts";

pinSteps([tlogTables], {
  sqlite: { "0003-tlog": "393758c5d57bc878", "0004-tlog": "abc98eca64e68503" },
  postgres: { "0003-tlog": "753216c664bd8e76", "0004-tlog": "2ba8ffba2eceafca" },
});

describeStores("a store", (makePlace) => {
  it("is verified with one read per 256 tiles of its log", async () => {
    const place = await makePlace();
    const { store, countMessages } = await openCounted(() => place.open());
    const provider = await createCryptoProvider("openssl");
    onTestFinished(() => provider.close());
    const countReads = async (): Promise<number> => {
      await verifyAudit(store, provider);
      return countMessages(() => verifyAudit(store, provider));
    };
    await writeEntries(store, 256);
    const short = await countReads();
    await writeEntries(store, 15_360 - 256);
    expect(await countReads()).toBeLessThan(short + 20);
  });
});
