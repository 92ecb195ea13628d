/** Collects the figures: prints each at once, and writes all as JSON at the end. */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import os from "node:os";

/** One figure. */
export interface Figure {
  readonly name: string;
  /** Median of `values`. */
  readonly value: number;
  readonly unit: string;
  /** All values, in the order measured. */
  readonly values: readonly number[];
  readonly target?: string;
  /** Components of the value, by name. */
  readonly parts?: Readonly<Record<string, number>>;
}

const figures: Figure[] = [];

/** Returns the value below which a share of the values lies; 0 without values. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/** Returns the median. */
export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}

/** Returns the ratios of values that were measured in turn. */
export function ratiosOf(first: readonly number[], second: readonly number[]): number[] {
  return first.map((value, round) => value / (second[round] ?? Number.NaN));
}

/** Shows progress on a terminal; nothing clears the line. */
export function showProgress(text = ""): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
}

/**
 * Prints a figure and keeps it.
 *
 * @param values one for each round; the median counts
 */
export function report(
  name: string,
  values: readonly number[],
  { unit, target, parts }: Pick<Figure, "unit" | "target" | "parts">,
): void {
  const value = median(values);
  figures.push({ name, value, unit, values, ...(target && { target }), ...(parts && { parts }) });
  const shown = value >= 100 ? value.toFixed(0) : value.toFixed(2);
  const details = Object.entries(parts ?? {}).map(([part, amount]) => `${part} ${amount.toFixed(0)}`);
  const about = [...(target ? [target] : []), ...details].join("; ");
  console.log(`${name}: ${shown} ${unit}${about === "" ? "" : ` (${about})`}`);
}

/** Writes all figures, with a description of the machine. */
export function writeResults(path: string): void {
  const machine = {
    node: process.version,
    cpu: os.cpus()[0]?.model.trim(),
    cores: os.availableParallelism(),
    memoryMiB: Math.round(os.totalmem() / 1024 / 1024),
    system: `${os.type()} ${os.release()}`,
  };
  const commit = readCommit();
  const command = ["npm run bench --", ...process.argv.slice(2)].join(" ");
  writeFileSync(
    path,
    `${JSON.stringify({ date: new Date().toISOString(), command, commit, machine, figures }, undefined, 2)}\n`,
  );
}

function readCommit(): string | undefined {
  try {
    return execFileSync("git", ["rev-parse", "--short", "HEAD"], { encoding: "utf8" }).trim();
  } catch {
    return undefined;
  }
}
