/**
 * Measures what the server adds to what it serves: `npm run bench [-- <seconds a measurement> [<part> …]]`,
 * where parts are chain, devices, tunnel, kms, pqc, overload and floods.
 *
 * Everything is compared with something else in the same run, since absolute times depend on the machine:
 * the figures to read are the ratios. Each pair is measured in turn, several times, and the medians compared.
 */
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { measureChain } from "./chain.ts";
import { measureDevices } from "./devices.ts";
import { measureFloods } from "./floods.ts";
import { measureKms } from "./kms.ts";
import { measureOverload } from "./overload.ts";
import { measurePqc } from "./pqc.ts";
import { inFlight, start, toMiB } from "./tools.ts";
import { measureTunnel } from "./tunnel.ts";

const dataDir = mkdtempSync(join(os.tmpdir(), "qsp-bench-"));
const app = await start("app-server.ts", join(dataDir, "app"));
const grpcJs = await start("grpc-js-server.ts");
const parts = {
  chain: () => measureChain(app),
  devices: () => measureDevices(app),
  tunnel: () => measureTunnel(app),
  kms: () => measureKms(app, dataDir),
  pqc: () => measurePqc(app, grpcJs),
  overload: () => measureOverload(app),
  floods: () => measureFloods(join(dataDir, "floods")),
};
const chosen = process.argv.slice(3);
try {
  console.log(
    `Node ${process.version}, ${os.availableParallelism()} cores, ${inFlight} calls in flight, load on the same machine`,
  );
  for (const [name, measure] of Object.entries(parts)) {
    if (chosen.length === 0 || chosen.includes(name)) await measure();
  }
  console.log(`  memory at the end: ${toMiB((await app.ask("report")).rssBytes)} MiB`);
} finally {
  app.tell("stop");
  grpcJs.tell("stop");
  rmSync(dataDir, { recursive: true, force: true });
}
