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

describe("the verdicts of both sides", () => {
  it("are both valid if neither side objects", () => {
    expect(sides.map(areBothValid)).toEqual([true, false, false, false]);
  });

  it("are both invalid if neither side takes a forgery", () => {
    expect(sides.map(areBothInvalid)).toEqual([false, false, false, true]);
  });

  it("are told as expected in no other case", () => {
    expect(sides.map((verdicts) => sayValid(verdicts, "Both sides find it valid."))).toEqual([
      "Both sides find it valid.",
      ...Array(3).fill("The sides do not both find it valid, which should not happen."),
    ]);
    expect(sides.map((verdicts) => sayInvalid(verdicts, "Neither side takes it."))).toEqual([
      ...Array(3).fill("One side still finds it valid, which should not happen."),
      "Neither side takes it.",
    ]);
  });

  it("are shown each with its side", () => {
    expect(reportBoth("the signature", { server: true, browser: false })).toEqual([
      { by: "server", claim: "the signature", holds: true, found: "valid" },
      { by: "browser", claim: "the signature", holds: false, found: "not valid" },
    ]);
  });
});

describe("a check of the browser", () => {
  it("tells equal from different", () => {
    expect([true, false].map((isEqual) => reportEqual("the hash", isEqual))).toEqual([
      { by: "browser", claim: "the hash", holds: true, found: "equal" },
      { by: "browser", claim: "the hash", holds: false, found: "different" },
    ]);
  });

  it("tells whether a secret key is in the answer", () => {
    expect([true, false].map(reportNoSecret)).toMatchObject([
      { holds: true, found: "none" },
      { holds: false, found: "there is one" },
    ]);
  });
});
