/**
 * Measures what the server adds to what it serves: `npm run bench [-- <seconds a measurement>]`.
 *
 * Everything is compared with something else in the same run, since absolute times depend on the machine:
 * the figures to read are the ratios. Each pair is measured in turn, several times, and the medians compared.
 */
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { measureKms } from "./kms.ts";
import { measurePqc } from "./pqc.ts";
import { inFlight, start, toMiB } from "./tools.ts";

const dataDir = mkdtempSync(join(os.tmpdir(), "qsp-bench-"));
const app = await start("app-server.ts", join(dataDir, "app"));
const grpcJs = await start("grpc-js-server.ts");
try {
  console.log(
    `Node ${process.version}, ${os.availableParallelism()} cores, ${inFlight} calls in flight, load on the same machine`,
  );
  await measureKms(app, dataDir);
  await measurePqc(app, grpcJs);
  console.log(`  memory at the end: ${toMiB((await app.ask("report")).rssBytes)} MiB`);
} finally {
  app.tell("stop");
  grpcJs.tell("stop");
  rmSync(dataDir, { recursive: true, force: true });
}
