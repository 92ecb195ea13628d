import { expect, it } from "vitest";
import { sayInvalid, sayValid } from "../page/checks.ts";

it("both sides' verdicts count as expected only if neither side disagrees", () => {
  const sides = [
    { server: true, browser: true },
    { server: true, browser: false },
    { server: false, browser: true },
    { server: false, browser: false },
  ];
  expect(sides.map((verdicts) => sayValid(verdicts, "Both sides find it valid."))).toEqual([
    "Both sides find it valid.",
    ...Array(3).fill("Not both sides find it valid, which should not happen."),
  ]);
  expect(sides.map((verdicts) => sayInvalid(verdicts, "Neither side takes it."))).toEqual([
    ...Array(3).fill("One side still finds it valid, which should not happen."),
    "Neither side takes it.",
  ]);
});
