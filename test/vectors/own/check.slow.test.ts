/** Runs check.py, an independent implementation, on our own vectors. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { findPython } from "../../interop/python.ts";
import { run } from "../../interop/tools.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";
import { type VectorSet, vectorSets } from "./vector-set.ts";

const folder = import.meta.dirname;
const python = findPython("cryptography.hazmat.primitives.asymmetric.mldsa");

const needed = python === undefined ? " (needs Python with cryptography 50 or newer)" : "";

/** Returns a different value of the same type; for a text, the first character becomes a different hexadecimal digit. */
function changeValue(value: unknown): unknown {
  if (typeof value === "boolean") return !value;
  if (Array.isArray(value)) return value.map((item) => ({ ...item, valid: !item.valid }));
  if (value === "") return "00";
  return typeof value === "string" ? `${value.startsWith("0") ? "1" : "0"}${value.slice(1)}` : value;
}

describe.skipIf(python === undefined)(`check.py, an independent implementation,${needed}`, () => {
  const check = (...args: string[]) => run(python ?? "", [join(folder, "check.py"), ...args]);

  it("accepts every file", async () => {
    const { code, stdout, stderr } = await check();
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toBe(
      vectorSets.map(({ name, cases }) => `${name}: ${cases.length} cases, 0 faults\n`).join(""),
    );
  });

  it("notices every changed value and verdict", async () => {
    const directory = makeTemporaryDirectory();
    const changed = vectorSets.map((set) => ({
      ...set,
      cases: set.cases.flatMap((one) => [
        { ...one, valid: !one.valid },
        // An invalid signature stays invalid when changed.
        ...(one.valid ? (["intermediate", "result"] as const) : []).flatMap((part) =>
          Object.entries(one[part]).map(([name, value]) => ({
            ...one,
            name: `${one.name}, ${name} changed`,
            [part]: { ...one[part], [name]: changeValue(value) },
          })),
        ),
      ]),
    }));
    for (const set of changed) writeFileSync(join(directory, `${set.name}.json`), JSON.stringify(set));
    const { code, stderr } = await check(directory);
    expect(code).toBe(1);
    const isFound = (set: VectorSet, name: string): boolean => stderr.includes(`${set.name}.json: ${name}: `);
    const missed = changed.flatMap((set) =>
      set.cases.filter(({ name }) => !isFound(set, name)).map(({ name }) => name),
    );
    expect(missed).toEqual([]);
  });
});
