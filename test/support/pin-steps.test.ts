import { expect, it } from "vitest";
import { findStepFaults } from "./pin-steps.ts";

const known = { "0001-kms": "a1", "0003-kms": "b2" };
const others = ["0001-kms", "0003-kms", "0004-tuf"];

it.each([
  ["no difference", {}, []],
  ["a new step", { "0005-kms": "c3" }, ['0005-kms is new: add "0005-kms": "c3" to the known steps']],
  ["two", { "0005-kms": "c3", "0005-iot": "d4" }, [/0005-kms is new: add/, /0005-iot is new: add/]],
  ["a number between", { "0002-kms": "c3" }, [/0002-kms is new: its number must be above 0004-tuf/]],
  ["another package's number", { "0004-kms": "c3" }, [/must be above 0004-tuf/]],
  [
    "a changed step",
    { "0003-kms": "ff" },
    [/0003-kms has changed: a released step never changes; add a new step/],
  ],
  ["a missing step", { "0003-kms": undefined }, [/0003-kms is missing: a released step stays/]],
])("the fault of %s in a migration", (_what, change, expected) => {
  const found = Object.fromEntries(
    Object.entries({ ...known, ...change }).flatMap(([name, hash]) =>
      hash === undefined ? [] : [[name, hash]],
    ),
  );
  const faults = findStepFaults(found, known, [...others, ...Object.keys(found)]);
  expect(faults).toEqual(expected.map((text) => expect.stringMatching(text)));
});
