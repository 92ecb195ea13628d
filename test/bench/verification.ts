/** Audit log entries that a verification reads per second, and its share of the event loop. */
import { join } from "node:path";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { sqliteIn } from "../../src/database/database.ts";
import { masterKeyIn } from "../../src/secrets/master-key.ts";
import { writeLongLog } from "../support/long-log.ts";
import { logVerification, openStore } from "../support/open-store.ts";
import { report, showProgress } from "./results.ts";
import { rounds } from "./tools.ts";

const entries = 200_000;

export async function measureVerification(dataDir: string): Promise<void> {
  const folder = join(dataDir, "verification");
  const provider = await createCryptoProvider("auto");
  const store = await openStore({ location: sqliteIn(folder), masterKey: masterKeyIn(folder), provider });
  try {
    showProgress(`writing ${entries.toLocaleString("en")} entries`);
    await writeLongLog(store, entries);
    const rates: number[] = [];
    const shares: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      showProgress(`verifying them: round ${round + 1} of ${rounds} `);
      const startMs = performance.now();
      const start = performance.eventLoopUtilization();
      const { valid } = await logVerification.verifyAudit(store, provider);
      if (!valid) throw new Error("the log must be valid");
      rates.push(entries / ((performance.now() - startMs) / 1000));
      shares.push(performance.eventLoopUtilization(start).utilization * 100);
    }
    showProgress();
    report("verification of the audit log", rates, { unit: "entries per second", target: "reach 100,000" });
    report("event loop during the verification", shares, { unit: "% busy" });
  } finally {
    await store.close();
    await provider.close();
  }
}
