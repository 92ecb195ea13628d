/** Runs vectors/check.py, an independent implementation of agreements, on the vectors. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { findPython } from "../../../test/interop/python.ts";
import { run } from "../../../test/interop/tools.ts";
import { present } from "../../../test/services/answers.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import type { VectorSet } from "../../../test/vectors/own/vector-set.ts";

const folder = join(import.meta.dirname, "vectors");
const python = findPython("cryptography.hazmat.primitives.asymmetric.mlkem");
const needed = python === undefined ? " (needs Python with cryptography 50 or newer)" : "";

describe.skipIf(python === undefined)(`check.py, an independent implementation,${needed}`, () => {
  const check = (...args: string[]) => run(python ?? "", [join(folder, "check.py"), ...args]);

  it("accepts every vector", async () => {
    const { code, stdout, stderr } = await check();
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: "agreement: 7 cases, 0 faults\ntunnel-statement: 3 cases, 0 faults\n",
      stderr: "",
    });
  });

  it("notices every changed value", async () => {
    const directory = makeTemporaryDirectory();
    const { cases, ...set }: VectorSet = JSON.parse(readFileSync(join(folder, "agreement.json"), "utf8"));
    const one = present(cases.find(({ valid }) => valid));
    const changed = (["intermediate", "result"] as const).flatMap((part) =>
      Object.entries(one[part]).map(([name, value]) => {
        const other = `${String(value).startsWith("0") ? "1" : "0"}${String(value).slice(1)}`;
        return { ...one, name, [part]: { ...one[part], [name]: other } };
      }),
    );
    writeFileSync(join(directory, "agreement.json"), JSON.stringify({ ...set, cases: changed }));
    const { code, stderr } = await check(directory);
    expect(code).toBe(1);
    expect(changed.length).toBe(9);
    expect(changed.filter(({ name }) => !stderr.includes(`agreement.json: ${name}: `))).toEqual([]);
  });
});
