/** Runs vectors/check.py, an independent implementation of agreements, on the vectors. */
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { findPython } from "../../../test/interop/python.ts";
import { run } from "../../../test/interop/tools.ts";

const python = findPython("cryptography.hazmat.primitives.asymmetric.mlkem");
const needed = python === undefined ? " (needs Python with cryptography 50 or newer)" : "";

describe.skipIf(python === undefined)(`check.py, an independent implementation,${needed}`, () => {
  it("accepts every vector", async () => {
    const { code, stdout, stderr } = await run(python ?? "", [join(import.meta.dirname, "vectors/check.py")]);
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: "agreement: 7 cases, 0 faults\ntunnel-statement: 3 cases, 0 faults\n",
      stderr: "",
    });
  });
});
