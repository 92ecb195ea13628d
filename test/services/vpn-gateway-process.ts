/**
 * The whole app in a process of its own that can be looked into. Started with fork and the data directory; it sends its
 * URL, and then takes paths to write heap snapshots to, and answers when one is written.
 */
import { writeHeapSnapshot } from "node:v8";
import { pino } from "pino";
import { createApp } from "../../src/app.ts";
import { readConfig } from "../../src/config.ts";
import { loadPackages } from "../support/whole-program.ts";

const [dataDir = ""] = process.argv.slice(2);
const app = await createApp(
  readConfig(["--port", "0", "--data-dir", dataDir], {}),
  pino({ level: "silent" }),
  { packages: await loadPackages() },
);
const { port } = await app.server.listen(0, "127.0.0.1");
process.on("message", (path: string) => process.send?.(writeHeapSnapshot(path)));
process.on("disconnect", () => process.exit());
process.send?.(`http://127.0.0.1:${port}`);
