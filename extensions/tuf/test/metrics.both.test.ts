/** Which roles have a series if there are too many. */
import { expect, it } from "vitest";
import { present } from "../../../test/services/answers.ts";
import { describeStores } from "../../../test/support/on-both.ts";
import { exposeRepositories } from "../metrics.ts";
import { createTufStore } from "../store.ts";

describeStores("the metric of expiring metadata", (makePlace) => {
  it("has 200 series, in which no owner hides another's roles", async () => {
    const store = await (await makePlace()).open();
    const tuf = createTufStore(store);
    const now = new Date();
    /** Adds a repository whose roles targets and timestamp expire after so many seconds. */
    const add = (repository: string, owner: string, seconds: number) =>
      store.write(async (transaction) => {
        await tuf.repositories.insert(transaction, {
          ...{ repository, owner, walletId: "w", targetsKeyId: "k", snapshotKeyId: "k", timestampKeyId: "k" },
          ...{ rootSeconds: 1, targetsSeconds: 1, snapshotSeconds: 1, timestampSeconds: 1, rootVersion: 1 },
          ...{ sequence: 0, publishedSequence: 0, revision: 0, renewAt: undefined, createdAt: now },
        });
        for (const [i, role] of ["timestamp", "targets"].entries())
          await tuf.metadata.insert(transaction, {
            ...{ repository, role, version: 1, publishedAt: now, sequence: 0, length: 1 },
            ...{ expiresAt: new Date(now.getTime() + (seconds + i) * 1000), sha256: new Uint8Array(32) },
          });
      });
    for (let i = 0; i < 120; i++) await add(`mal-${i}`, "mal", -1000);
    await add("plant", "ada", 500);
    const gauges: Parameters<Parameters<typeof exposeRepositories>[1]["watchGauge"]>[0][] = [];
    exposeRepositories(
      { store, now: () => now },
      { watchGauge: (gauge) => void gauges.push(gauge), addCounter: () => () => {} },
    );
    const series = await present(gauges[0]).read();
    expect(series).toHaveLength(200);
    const ofAda = series.filter(({ labels }) => labels.repository === "plant");
    expect(ofAda.map(({ labels, value }) => [labels.role, value])).toEqual([
      ["timestamp", 500],
      ["targets", 501],
    ]);
  });
});
