import { setTimeout } from "node:timers/promises";
import { expect, it } from "vitest";
import { addRow, readRowNames } from "../support/entries.ts";
import { describeStores } from "../support/on-both.ts";

describeStores("two programs on one store", (makePlace) => {
  it("write in turn when each waits for its own answers, and lose nothing", async () => {
    const place = await makePlace();
    const programs = [await place.open(), await place.open()];
    await Promise.all(
      programs.map(async (store, i) => {
        for (let n = 0; n < 20; n++)
          await store.write((transaction) => addRow(transaction, `row ${n} of ${i}`));
      }),
    );
    expect(await readRowNames(place)).toHaveLength(40);
    expect(await programs[0]?.verifyAudit()).toMatchObject({ valid: true, entries: 40 });
  });

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
