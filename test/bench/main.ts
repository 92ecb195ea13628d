/**
 * Measures the server: `npm run bench [-- [--seconds 4] [--rounds 3] [--json FILE] [PART …]]`, where the parts
 * are the names below. Most parts require h2load (Debian: nghttp2-client).
 *
 * Every figure is compared with a baseline of the same run, because absolute times depend on the machine: read the
 * ratios. Both sides of a pair are measured in turn, several times, and the medians are compared.
 */
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { measureAudit } from "./audit.ts";
import { measureCalls } from "./calls.ts";
import { measureProviders } from "./providers.ts";
import { writeResults } from "./results.ts";
import { measureServers, measureStart } from "./start.ts";
import { chosenParts, inFlight, options, start, toMiB } from "./tools.ts";
import { measureVerification } from "./verification.ts";

const dataDir = mkdtempSync(join(os.tmpdir(), "qsp-bench-"));
const app = await start("app-server.ts", join(dataDir, "app"));
const parts = {
  calls: () => measureCalls(app, dataDir),
  providers: measureProviders,
  start: () => measureStart(dataDir),
  servers: () => measureServers(dataDir),
  audit: () => measureAudit(dataDir),
  verification: () => measureVerification(dataDir),
};
const unknown = chosenParts.filter((part) => !Object.hasOwn(parts, part));
try {
  if (unknown.length > 0)
    throw new Error(`${unknown.join(", ")}: unknown; the parts are ${Object.keys(parts).join(", ")}`);
  console.log(
    `Node ${process.version}, ${os.availableParallelism()} cores, ${inFlight} calls in flight, load on the same machine`,
  );
  for (const [name, measure] of Object.entries(parts)) {
    if (chosenParts.length === 0 || chosenParts.includes(name)) await measure();
  }
  console.log(`  memory at the end: ${toMiB((await app.ask("report")).rssBytes)} MiB`);
  if (options.json !== undefined) writeResults(options.json);
} finally {
  app.send("stop");
  rmSync(dataDir, { recursive: true, force: true });
}
