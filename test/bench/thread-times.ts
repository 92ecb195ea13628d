/** Where a process spends its time (Linux): CPU time of its threads by role. */
import { readdirSync, readFileSync } from "node:fs";

/** CPU time by role, in microseconds. */
export interface ThreadTimes {
  /** The event loop. */
  readonly loop: number;
  /** libuv's pool, which signs. */
  readonly pool: number;
  /** The SQLite threads. */
  readonly sqlite: number;
  /** V8's own threads (compiler, garbage collector) and all others. */
  readonly other: number;
}

/** Reads the CPU time of all threads since the process started. */
export function readThreadTimes(pid: number): ThreadTimes {
  const times = { loop: 0, pool: 0, sqlite: 0, other: 0 };
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const read = (file: string): string => readFileSync(`/proc/${pid}/task/${thread}/${file}`, "utf8");
    try {
      // The first number is the time on a core, in nanoseconds.
      times[kindOf(Number(thread) === pid, read("comm"))] += Number(read("schedstat").split(" ")[0]) / 1000;
    } catch {
      // The thread has ended since.
    }
  }
  return times;
}

function kindOf(isMain: boolean, name: string): keyof ThreadTimes {
  if (isMain) return "loop";
  if (name.startsWith("libuv-worker")) return "pool";
  return name.startsWith("sqlite") ? "sqlite" : "other";
}

/** Returns the CPU time for each call between two readings. */
export function perCall(before: ThreadTimes, after: ThreadTimes, calls: number): ThreadTimes {
  const take = (kind: keyof ThreadTimes): number => (after[kind] - before[kind]) / calls;
  return { loop: take("loop"), pool: take("pool"), sqlite: take("sqlite"), other: take("other") };
}

/** Returns the total of all threads. */
export function sumOf({ loop, pool, sqlite, other }: ThreadTimes): number {
  return loop + pool + sqlite + other;
}
