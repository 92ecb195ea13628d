import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { listSettings } from "../../src/config.ts";
import { allReasons, generatedPages } from "../../src/docs/write.ts";
import { refuse, toHttpStatus } from "../../src/errors.ts";
import { nameCode } from "../../src/protocol/code-name.ts";
import { loadPackages, loadSettings } from "../support/whole-program.ts";

const read = (path: string): string => readFileSync(join(import.meta.dirname, "../..", path), "utf8");

describe("a page that is made from code", () => {
  it.each(Object.entries(generatedPages))("%s is up to date; else run: npm run docs", (path, render) => {
    expect(read(path)).toBe(render());
  });
});

describe("docs/errors.md", () => {
  const rows = [
    ...read("docs/errors.md").matchAll(/^\| `([A-Z_]+)` \| (\w+) \| (\d+) \| (.+) \| (.+) \|$/gm),
  ];
  const reasons = allReasons.flatMap((topic) => topic.reasons);
  const names = reasons.map(({ name }) => name);

  it("has one row for each reason", () => {
    expect(rows.map(([, name]) => name).sort()).toEqual(names.toSorted());
  });

  it("names each reason once", () => {
    expect(new Set(names).size).toBe(names.length);
  });

  it.each(reasons)("gives $name the code and the HTTP status that it has", (reason) => {
    const error = refuse(reason, "");
    const [, , code, status] = rows.find(([, candidate]) => candidate === reason.name) ?? [];
    expect([code, Number(status)]).toEqual([nameCode(error.code), toHttpStatus(error)]);
  });

  it("has causes and remedies that are sentences", () => {
    const texts = reasons.flatMap(({ cause, remedy }) => [cause, remedy]);
    expect(texts.filter((text) => !text.endsWith("."))).toEqual([]);
  });
});

describe("docs/settings.md", () => {
  it("has one row for each setting", async () => {
    const variables = [...read("docs/settings.md").matchAll(/^\| .*? \| `(QSP_\w+)` \|/gm)];
    expect(listSettings(await loadSettings())).toHaveLength(variables.length);
  });
});

describe("docs/access.md", () => {
  it("has one row for each call of each service", async () => {
    const calls = (await loadPackages()).flatMap(({ files }) =>
      files.flatMap((file) => file.services.flatMap(({ methods }) => methods)),
    );
    expect(read("docs/access.md").match(/^\| `\w+` \|/gm)).toHaveLength(calls.length);
  });
});
