/** A worker that shares memory with others: does what its test says, many times, and tells what it saw. */
import { setImmediate } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";
import { openSharedMemory, type SharedMemoryParts } from "../../src/shared-memory/shared-memory.ts";

/** What a contender does. */
export interface ContenderInput {
  readonly parts: SharedMemoryParts;
  readonly worker: number;
  readonly task: "count" | "enter" | "take" | "hold";
  readonly times: number;
  /** Whom all contenders have in common: one cell, changed without a lock. */
  readonly inside: SharedArrayBuffer;
}

const { parts, worker, task, times, inside } = workerData as ContenderInput;
const memory = openSharedMemory(parts, worker);
const cell = new Int32Array(inside);

/** Counts who is inside together with this one. @returns the most */
function meet(): number {
  return Atomics.add(cell, 0, 1) + 1;
}

async function run(): Promise<number> {
  let most = 0;
  for (let i = 0; i < times; i += 1) {
    if (task === "count") {
      memory.logIns.update("ada", (entry) => {
        entry.value += 1;
        entry.atMs = 1;
      });
    } else if (task === "enter") {
      const claim = memory.clients.claim("ada");
      if (claim.enter("calls", 2)) {
        most = Math.max(most, meet());
        Atomics.sub(cell, 0, 1);
      }
      claim.close();
    } else {
      const leave = await memory.slowPlaces.take();
      most = Math.max(most, meet());
      // Long enough for others to come as well.
      for (let turn = 0; turn < 50; turn += 1) await setImmediate();
      Atomics.sub(cell, 0, 1);
      leave();
    }
  }
  return most;
}

// A wait for a place does not keep a thread alive. The test ends it.
parentPort?.on("message", () => {});
if (task === "hold") {
  memory.clients.claim("ada").add("streams", 3);
  await memory.slowPlaces.take();
  await memory.writeTurn.take();
  parentPort?.postMessage(0);
} else parentPort?.postMessage(await run());
