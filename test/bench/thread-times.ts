/** Where a process spends its time (Linux): CPU time of its threads, by what they do. */
import { readdirSync, readFileSync } from "node:fs";

/** Microseconds of CPU. */
export interface ThreadTimes {
  /** The event loop. */
  readonly loop: number;
  /** libuv's pool, which signs. */
  readonly pool: number;
  /** The threads of SQLite. */
  readonly sqlite: number;
  /** V8's own threads, which compile and collect garbage, and the rest. */
  readonly other: number;
}

/** Reads the time of all threads since the process began. */
export function readThreadTimes(pid: number): ThreadTimes {
  const times = { loop: 0, pool: 0, sqlite: 0, other: 0 };
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const read = (file: string): string => readFileSync(`/proc/${pid}/task/${thread}/${file}`, "utf8");
    try {
      // The first number is the nanoseconds on a core.
      times[kindOf(Number(thread) === pid, read("comm"))] += Number(read("schedstat").split(" ")[0]) / 1000;
    } catch {
      // It has ended meanwhile.
    }
  }
  return times;
}

function kindOf(isMain: boolean, name: string): keyof ThreadTimes {
  if (isMain) return "loop";
  if (name.startsWith("libuv-worker")) return "pool";
  return name.startsWith("sqlite") ? "sqlite" : "other";
}

/** Takes the time between two readings, for each call. */
export function perCall(before: ThreadTimes, after: ThreadTimes, calls: number): ThreadTimes {
  const take = (kind: keyof ThreadTimes): number => (after[kind] - before[kind]) / calls;
  return { loop: take("loop"), pool: take("pool"), sqlite: take("sqlite"), other: take("other") };
}

/** Adds up the time of all threads. */
export function sumOf({ loop, pool, sqlite, other }: ThreadTimes): number {
  return loop + pool + sqlite + other;
}
