/**
 * Returns memory to the system that only startup needed. V8's young generation grows to 32 MB while the
 * modules load, and shrinks only in a collection that is asked to save memory.
 */
import { performance } from "node:perf_hooks";
import v8 from "node:v8";
import vm from "node:vm";

/** Milliseconds between checks of the event loop. */
const pollIntervalMs = 2000;
/** Maximum event-loop utilization that counts as idle. */
const quietUtilization = 0.05;

/** Returns the memory once the event loop is idle, because the collection takes 0.1 to 0.3 seconds. */
export function returnMemoryWhenQuiet(): void {
  let before = performance.eventLoopUtilization();
  const timer = setInterval(() => {
    const { utilization } = performance.eventLoopUtilization(before);
    before = performance.eventLoopUtilization();
    if (utilization > quietUtilization) return;
    clearInterval(timer);
    returnMemory();
  }, pollIntervalMs).unref();
}

/** Collects all garbage of this thread and shrinks its heap. */
export function returnMemory(): void {
  v8.setFlagsFromString("--expose-gc");
  const collect = vm.runInNewContext("gc") as (options: Readonly<Record<string, string>>) => void;
  collect({ type: "major", flavor: "last-resort", execution: "sync" });
}
