import { describe, expect, it } from "vitest";
import {
  areBothInvalid,
  areBothValid,
  reportBoth,
  reportEqual,
  reportNoSecret,
  sayInvalid,
  sayValid,
} from "../page/checks.ts";

const sides = [
  { server: true, browser: true },
  { server: true, browser: false },
  { server: false, browser: true },
  { server: false, browser: false },
];

describe("both sides' verdicts", () => {
  it("are both valid if neither side objects", () => {
    expect(sides.map(areBothValid)).toEqual([true, false, false, false]);
  });

  it("are both invalid if neither side accepts a forgery", () => {
    expect(sides.map(areBothInvalid)).toEqual([false, false, false, true]);
  });

  it("count as expected in no other case", () => {
    expect(sides.map((verdicts) => sayValid(verdicts, "Both sides find it valid."))).toEqual([
      "Both sides find it valid.",
      ...Array(3).fill("Not both sides find it valid, which should not happen."),
    ]);
    expect(sides.map((verdicts) => sayInvalid(verdicts, "Neither side takes it."))).toEqual([
      ...Array(3).fill("One side still finds it valid, which should not happen."),
      "Neither side takes it.",
    ]);
  });

  it("are shown with their side", () => {
    expect(reportBoth("the signature", { server: true, browser: false })).toEqual([
      { by: "server", claim: "the signature", holds: true, found: "valid" },
      { by: "browser", claim: "the signature", holds: false, found: "not valid" },
    ]);
  });
});

describe("a check by the browser", () => {
  it("distinguishes equal from different", () => {
    expect([true, false].map((isEqual) => reportEqual("the hash", isEqual))).toEqual([
      { by: "browser", claim: "the hash", holds: true, found: "equal" },
      { by: "browser", claim: "the hash", holds: false, found: "different" },
    ]);
  });

  it("reports whether the answer contains a secret key", () => {
    expect([true, false].map(reportNoSecret)).toMatchObject([
      { holds: true, found: "none" },
      { holds: false, found: "found" },
    ]);
  });
});
