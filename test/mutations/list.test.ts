import { expect, it } from "vitest";
import { readMutations } from "./list.ts";

it("lists mistakes that can still be made", () => {
  expect(readMutations().length).toBeGreaterThanOrEqual(60);
});
