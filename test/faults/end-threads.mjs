// Preloaded into the program: from SIGUSR2 on, its SQLite threads and their replacements end.
import process from "node:process";

const running = new Set();
let endsAll = false;
process.on("worker", (worker) => {
  if (!worker.threadName.startsWith("sqlite")) return;
  running.add(worker);
  if (endsAll) worker.terminate();
});
process.on("SIGUSR2", () => {
  endsAll = true;
  for (const worker of running) worker.terminate();
});
