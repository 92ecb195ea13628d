import { expect, it } from "vitest";
import { readMutations } from "./list.ts";

it("lists only mistakes that still apply to the code", () => {
  expect(readMutations().length).toBeGreaterThanOrEqual(60);
});
