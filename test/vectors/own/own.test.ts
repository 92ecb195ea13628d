import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import type { CryptoProvider } from "../../../src/crypto/provider.ts";
import { findPython } from "../../interop/python.ts";
import { run } from "../../interop/tools.ts";
import { describeProviders } from "../../support/crypto-providers.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";
import { renderVectorFiles } from "./generate.ts";
import type { VectorSet } from "./vector-set.ts";
import { verifyCase } from "./verify-case.ts";

const folder = import.meta.dirname;
const names = readdirSync(folder).filter((name) => name.endsWith(".json"));
const read = (name: string): string => readFileSync(join(folder, name), "utf8");
const sets = names.map((name): VectorSet => JSON.parse(read(name)));

describe("the files of our own vectors", () => {
  const rendered = renderVectorFiles();

  it("are those that the generator makes", () => {
    expect(names.sort()).toEqual([...rendered.keys()].sort());
  });

  it.each(names)("%s is as the generator makes it; else run: node test/vectors/own/generate.ts", (name) => {
    expect(read(name) === rendered.get(name)).toBe(true);
  });

  it.each(sets)("those of $name name a section of docs/protocol.md", ({ specification }) => {
    const [page = "", heading] = specification.split("#");
    const headings = [...readFileSync(join(folder, "../../..", page), "utf8").matchAll(/^#+ (.+)$/gm)];
    const anchors = headings.map(([, text = ""]) => text.toLowerCase().replaceAll(/[^a-z0-9 -]/g, ""));
    expect(anchors.map((text) => text.replaceAll(" ", "-"))).toContain(heading);
  });

  it("hold what docs/protocol.md shows", () => {
    const page = readFileSync(join(folder, "../../../docs/protocol.md"), "utf8");
    const shown = [...page.matchAll(/^```text\n(\{"[^\n]*\}|[0-9a-f]{64})\n```$/gm)].map(([, text]) => text);
    const strings = sets.flatMap(({ cases }) =>
      cases.flatMap(({ intermediate, result }) => Object.values({ ...intermediate, ...result })),
    );
    expect(shown.length).toBe(8);
    expect(strings).toEqual(expect.arrayContaining(shown));
  });
});

describeProviders("our code with %s agrees with the vector of", (providerName) => {
  let provider: CryptoProvider;
  beforeAll(async () => {
    provider = await createCryptoProvider(providerName);
  });
  afterAll(() => provider.close());

  const all = sets.flatMap((set) =>
    set.cases.map((one) => ({ title: `${set.name}: ${one.name}`, set, one })),
  );
  it.each(all)("$title", async ({ set, one }) => {
    const { valid, ...made } = await verifyCase(provider, set, one);
    expect(valid).toBe(one.valid);
    expect(one.result).toMatchObject(made);
  });
});

const python = findPython("cryptography.hazmat.primitives.asymmetric.mldsa");
const needed = python === undefined ? " (needs Python with cryptography 50 or newer)" : "";

describe.skipIf(python === undefined)(`check.py, which shares no code with us,${needed}`, () => {
  const check = (...args: string[]) => run(python ?? "", [join(folder, "check.py"), ...args]);

  it("finds no fault in any file", async () => {
    const { code, stdout, stderr } = await check();
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toBe(sets.map(({ name, cases }) => `${name}: ${cases.length} cases, 0 faults\n`).join(""));
  });

  it("finds every value that is changed, and every verdict", async () => {
    const directory = makeTemporaryDirectory();
    const changed = sets.map((set) => ({
      ...set,
      cases: set.cases.flatMap((one) => [
        { ...one, valid: !one.valid },
        // What is invalid stays invalid when its signature is changed.
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

/** Another value of the same type; of a text the first character is another hexadecimal digit. */
function changeValue(value: unknown): unknown {
  if (typeof value === "boolean") return !value;
  if (Array.isArray(value)) return value.map((item) => ({ ...item, valid: !item.valid }));
  if (value === "") return "00";
  return typeof value === "string" ? `${value.startsWith("0") ? "1" : "0"}${value.slice(1)}` : value;
}
