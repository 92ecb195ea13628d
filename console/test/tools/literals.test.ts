import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { findPython } from "../../../test/interop/python.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { quotePythonOrGo, quoteShell, writeJson } from "../../page/snippets/literals.ts";
import { hostileTexts } from "./hostile-texts.ts";

/** Characters that a terminal, an editor or a reader would not see correctly. */
const hidden = /[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}]/u;

describe("a text as a literal", () => {
  const python = findPython("json");
  it.skipIf(python === undefined)(`is the same text in Python${python ? "" : " (needs Python)"}`, () => {
    const program =
      "import ast, json, sys; print(json.dumps([ast.literal_eval(x) for x in json.load(sys.stdin)]))";
    const literals = hostileTexts.map(quotePythonOrGo);
    for (const literal of literals) expect(literal).not.toMatch(hidden);
    const read = execFileSync(python ?? "", ["-c", program], { input: JSON.stringify(literals) });
    expect(JSON.parse(read.toString())).toEqual(hostileTexts);
  });

  it("is the same JSON in a shell, and nothing in it runs", () => {
    const cwd = makeTemporaryDirectory();
    for (const text of hostileTexts) {
      const json = writeJson({ [text]: text });
      expect(json).not.toMatch(hidden);
      const printed = execFileSync("sh", ["-c", `printf %s ${quoteShell(json)}`], { cwd, encoding: "utf8" });
      expect(JSON.parse(printed)).toEqual({ [text]: text });
    }
    expect(readdirSync(cwd)).toEqual([]);
  });

  it("contains no lone surrogates, which are not text", () => {
    expect(quotePythonOrGo("a\ud800")).toBe('"a\ufffd"');
  });
});
