/** One caller's flood does not affect other callers: all of ada's calls succeed in time, whatever mallory does. */
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { endAfterAll } from "../support/at-end.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { type Battlefield, type Noticed, startBattlefield } from "./floods.ts";

/** Duration of each flood, in milliseconds. */
const measureMs = 15_000;
/** Maximum duration of a call, in milliseconds, on an otherwise idle machine with two cores. */
const limitMs = 2000;

const atEnd = endAfterAll();
let field: Battlefield;

beforeAll(async () => {
  field = await startBattlefield(join(makeTemporaryDirectory(atEnd), "data"));
  atEnd(() => field.stop());
}, 300_000);

describe("a user's signatures and log-ins", { timeout: 1_800_000 }, () => {
  it.each([
    "300 health checks a second",
    "3 wrong passwords a second, one address",
    "3 wrong passwords a second, many addresses",
    "150 batches of 1,000 ML-DSA-65",
    "6 batches of 500 SLH-DSA-SHA2-128s",
  ])("all succeed within 2 seconds while another user sends %s", async (flood) => {
    const noticed = await field.measure(flood, measureMs);
    console.info(`${flood}: ${noticed.map(describeNoticed).join("; ")}; ${availableParallelism()} cores`);
    for (const { made, succeeded, p99Ms } of noticed) {
      expect(succeeded).toBe(made);
      expect(p99Ms).toBeLessThan(limitMs * field.slowness);
    }
  });
});

function describeNoticed({ name, made, succeeded, p50Ms, p99Ms }: Noticed): string {
  return `${name} ${succeeded}/${made}, p50 ${p50Ms.toFixed(0)} ms, p99 ${p99Ms.toFixed(0)} ms`;
}
