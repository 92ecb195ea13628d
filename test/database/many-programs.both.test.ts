import { setTimeout } from "node:timers/promises";
import { expect, it } from "vitest";
import { addRow } from "../support/entries.ts";
import { describeStores } from "../support/on-both.ts";

describeStores("two programs on one store", (makePlace) => {
  it("find the log valid at every moment while the other program writes entries and signs checkpoints", async () => {
    const place = await makePlace();
    const [writer, verifier] = [await place.open(), await place.open()];
    let isWriting = true;
    const found: Awaited<ReturnType<typeof verifier.verifyAudit>>[] = [];
    const written = (async () => {
      for (let n = 0; n < 15 || found.length < 2; n++) {
        await writer.write((transaction) => addRow(transaction, `row ${n}`));
        await writer.verifyAudit();
      }
      isWriting = false;
    })();
    while (isWriting) {
      found.push(await verifier.verifyAudit());
      await setTimeout(1);
    }
    await written;
    expect(found.filter(({ valid }) => !valid)).toEqual([]);
  });
});
