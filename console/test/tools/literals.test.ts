import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { expect, it } from "vitest";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { quoteShell, writeJson } from "../../page/snippets/literals.ts";
import { hostileTexts } from "./hostile-texts.ts";

/** Characters that a terminal, an editor or a reader would not see correctly. */
const hidden = /[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}]/u;

it("a text is the same JSON in a shell, and nothing in it runs", () => {
  const cwd = makeTemporaryDirectory();
  for (const text of hostileTexts) {
    const json = writeJson({ [text]: text });
    expect(json).not.toMatch(hidden);
    const printed = execFileSync("sh", ["-c", `printf %s ${quoteShell(json)}`], { cwd, encoding: "utf8" });
    expect(JSON.parse(printed)).toEqual({ [text]: text });
  }
  expect(readdirSync(cwd)).toEqual([]);
});
