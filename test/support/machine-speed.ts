/**
 * Limits of time that hold on slow machines too. A limit is meant for a machine that has nothing else to do, and of
 * which this file knows how long it takes for a fixed piece of work. Another machine has as many times longer.
 */
import { hash } from "node:crypto";
import { expect } from "vitest";

/** How many times longer than usual this machine takes at the moment. At least 1. */
export interface Slowness {
  /** By CPU time: the processor is slow, or shares its caches and units with others. */
  readonly cpu: number;
  /** By the clock: the processor also runs other programs. */
  readonly clock: number;
}

/** What the work takes where the limits were chosen. */
const usualMs = 18;
const rounds = 5;

/** Milliseconds of CPU that this process has used. Unlike a clock, they do not go on while others have the machine. */
export function readCpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** Compares this machine with the one of the limits. Takes some 100 ms there. */
export function measureSlowness(): Slowness {
  const text = JSON.stringify(
    Array.from({ length: 2000 }, (_, i) => ({ name: `item ${i}`, size: i, tags: ["a", "b", `${i}`] })),
  );
  // Not measured: the first round also compiles.
  work(text);
  const [startedMs, startedCpuMs] = [performance.now(), readCpuMs()];
  for (let round = 0; round < rounds; round += 1) work(text);
  return {
    cpu: Math.max(1, (readCpuMs() - startedCpuMs) / rounds / usualMs),
    clock: Math.max(1, (performance.now() - startedMs) / rounds / usualMs),
  };
}

/** What servers do most: they read, arrange and write objects, allocate memory, and hash. */
function work(text: string): void {
  for (let i = 0; i < 20; i += 1) {
    const items: { size: number }[] = JSON.parse(text);
    items.sort((a, b) => b.size - a.size);
    hash("sha256", JSON.stringify(items));
  }
}

/** Expects that something took less CPU time than a limit, or than the limit on a machine as slow as this one. */
export function expectCpuWithin(tookMs: number, limitMs: number): void {
  if (!(tookMs < limitMs)) expect(tookMs).toBeLessThan(limitMs * measureSlowness().cpu);
}

/** Expects that something took less time by the clock than a limit, or than the limit on a machine as slow as this one. */
export function expectWithin(tookMs: number, limitMs: number): void {
  if (!(tookMs < limitMs)) expect(tookMs).toBeLessThan(limitMs * measureSlowness().clock);
}
