import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { isMissing, run } from "../interop/tools.ts";
import { endAfterAll } from "../support/at-end.ts";
import { type ApiServer, startApi } from "./api-server.ts";

/** Which texts each pattern matches, by pattern and text. */
type Rows = readonly (readonly boolean[])[];

/**
 * Edge cases of the patterns. In Python, `$` also matches before a final line break, so no text ends with
 * one.
 */
const texts = [
  ["", "a", "thermometer", "é𝒜", "a\nb", "\0", "a\u007f", "\u0085a", "\u00a0", "\u001fa", "a\u2028b"],
  [`0x${"a1".repeat(20)}`, `0x${"a1".repeat(20)}0`, "0f".repeat(32), "0F".repeat(31)],
  ["AA", "AA==", "AAA", "AAA=", "AA=", "A", "AAAA", "+/+/", "-_-_", "A===", "AA==AA=="],
  ["localhost:80", "[::1]:65535", "127.0.0.1:65536", "1.2.3:1", "*.example.com", "https://example.com"],
  ["ada@example.com", "CN=release", "1.5s", "-3s", "s"],
].flat();

let api: ApiServer;
let patterns: readonly string[];
const atEnd = endAfterAll();

beforeAll(async () => {
  api = await startApi("open", atEnd);
  patterns = [...new Set(findPatterns(api.document))];
}, 180_000);

/** Returns every value of a "pattern" keyword, at any depth. */
function findPatterns(part: unknown): string[] {
  if (typeof part !== "object" || part === null) return [];
  const { pattern } = part as { readonly pattern?: unknown };
  return [...(typeof pattern === "string" ? [pattern] : []), ...Object.values(part).flatMap(findPatterns)];
}

function matchHere(flags: string): Rows {
  return patterns.map((pattern) => {
    const expression = new RegExp(pattern, flags);
    return texts.map((text) => expression.test(text));
  });
}

async function matchWith(program: string, args: readonly string[], input: string): Promise<Rows> {
  const { code, stdout, stderr } = await run(program, args, input);
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

const engine = (file: string): string => join(import.meta.dirname, "engines", file);

describe("the patterns of the API description", { timeout: 120_000 }, () => {
  it("exist, and each matches some texts and rejects others", () => {
    expect(patterns.length).toBeGreaterThan(4);
    const verdicts = matchHere("").map((row) => new Set(row).size);
    expect(patterns.filter((_, index) => verdicts[index] !== 2)).toEqual([]);
  });

  it("mean the same in ECMA-262 with and without the u flag", () => {
    expect(matchHere("u")).toEqual(matchHere(""));
  });

  it.skipIf(isMissing("python3"))("mean the same in Python (needs python3)", async () => {
    const input = JSON.stringify({ patterns, texts });
    expect(await matchWith("python3", [engine("match.py")], input)).toEqual(matchHere(""));
  });

  it.skipIf(isMissing("ruby"))("mean the same in Ruby for a single line (needs ruby)", async () => {
    const lines = texts.filter((text) => !text.includes("\n"));
    const input = JSON.stringify({ patterns, texts: lines });
    const here = matchHere("").map((row) => row.filter((_, index) => lines.includes(texts[index] ?? "")));
    expect(await matchWith("ruby", [engine("match.rb")], input)).toEqual(here);
  });

  it.skipIf(isMissing("go"))("mean the same in Go, and so in RE2 (needs go)", async () => {
    const input = JSON.stringify({ patterns, texts });
    expect(await matchWith("go", ["run", engine("match.go")], input)).toEqual(matchHere(""));
  });

  it.skipIf(isMissing("java"))("mean the same in Java (needs java)", async () => {
    const encode = (list: readonly string[]): string =>
      list.map((text) => Buffer.from(text).toString("base64")).join(",");
    const input = `${encode(patterns)}\n${encode(texts)}\n`;
    expect(await matchWith("java", [engine("Match.java")], input)).toEqual(matchHere(""));
  });
});
