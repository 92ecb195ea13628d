// Preloaded into the program: on SIGUSR2 its SQLite threads end, and on SIGWINCH their replacements end too.
import process from "node:process";

const running = new Set();
let endsAll = false;
process.on("worker", (worker) => {
  if (!worker.threadName.startsWith("sqlite")) return;
  running.add(worker);
  if (endsAll) worker.terminate();
});
const endAll = () => {
  for (const worker of running) worker.terminate();
  running.clear();
};
process.on("SIGUSR2", endAll);
process.on("SIGWINCH", () => {
  endsAll = true;
  endAll();
});
