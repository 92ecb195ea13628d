/** CPU time and memory of a process, on Linux; see proc(5). */
import type { ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";

/** User and system time, in milliseconds: fields 14 and 15 of /proc/pid/stat, in ticks of 10 ms. */
export function readCpuMs({ pid }: Pick<ChildProcess, "pid">): number {
  const [, times = ""] = /.*\) (.*)/s.exec(readFileSync(`/proc/${pid}/stat`, "utf8")) ?? [];
  const [user = 0, system = 0] = times.split(" ").slice(11, 13).map(Number);
  return (user + system) * 10;
}

/** Current and peak memory, in bytes. */
export interface Memory {
  readonly nowBytes: number;
  readonly mostBytes: number;
}

/** Reads /proc/pid/status; NaN if the process has ended. */
export function readMemory({ pid }: Pick<ChildProcess, "pid">): Memory {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const read = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1]) * 1024;
  return { nowBytes: read("VmRSS"), mostBytes: read("VmHWM") };
}
