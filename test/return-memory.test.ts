/** Memory that startup needed and the server does not. */
import v8 from "node:v8";
import { expect, it } from "vitest";
import { returnMemory } from "../src/return-memory.ts";

function readYoungBytes(): number {
  return v8.getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space")?.space_size ?? 0;
}

it("is returned to the system: the young generation shrinks", () => {
  // Objects that survive some collections make it grow.
  let living: object[] = [];
  for (let i = 0; i < 400_000; i += 1) living.push({ i, text: String(i) });
  const before = readYoungBytes();
  living = [];
  returnMemory();
  expect(before).toBeGreaterThan(4 * 1024 * 1024);
  expect(readYoungBytes()).toBeLessThan(before / 2);
});
