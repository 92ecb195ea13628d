/**
 * A program for event-loop.full.test.ts: starts the server, and reports the CPU time of the longest turn of
 * its event loop. Unlike a delay, CPU time does not grow while other programs keep the machine busy.
 */
import { pino } from "pino";
import { createApp } from "../../src/app.ts";
import { readConfig } from "../../src/config.ts";
import { loadPackages } from "../support/whole-program.ts";

/** Messages to the parent: first the server's address, then the measurement. */
export interface TurnReport {
  readonly url?: string;
  readonly longestTurnMs?: number;
}

const [, , dataDir = ""] = process.argv;
const config = readConfig(["--port", "0", "--data-dir", dataDir], {});
const { server } = await createApp(config, pino({ level: "silent" }), {
  packages: await loadPackages(),
});
const { port } = await server.listen(config.port, config.host);

let longestTurnMs = 0;
let before = process.threadCpuUsage();

/** Runs once in each turn. */
function measure(): void {
  const { user, system } = process.threadCpuUsage(before);
  longestTurnMs = Math.max(longestTurnMs, (user + system) / 1000);
  before = process.threadCpuUsage();
  setImmediate(measure);
}

const send = (report: TurnReport): void => void process.send?.(report);

process.on("message", () => {
  send({ longestTurnMs });
  process.exit(0);
});
setImmediate(() => {
  before = process.threadCpuUsage();
  measure();
  send({ url: `http://${config.host}:${port}` });
});
