/**
 * Runs the whole app in its own process, so that tests can inspect its memory. Started with fork and the data
 * directory. It sends its URL, then accepts paths for heap snapshots and reports each written snapshot.
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
