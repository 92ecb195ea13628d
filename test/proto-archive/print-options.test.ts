import { expect, it } from "vitest";
import { quote } from "../../src/proto-archive/print-options.ts";

it("an option in quotes has escapes where a parser would stop, or read something else", () => {
  expect(quote('a "b" \\ \n é')).toBe(String.raw`"a \"b\" \\ \012 \303\251"`);
});
