import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { readByteLines, readLines } from "../../src/cli/files/read.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

function write(content: Uint8Array): string {
  const path = join(makeTemporaryDirectory(), "lines");
  writeFileSync(path, content);
  return path;
}

it("reads lines byte for byte, even binary ones and ones that arrive in parts", async () => {
  const degrees = Buffer.from("21.5 \xb0C", "latin1");
  const long = Buffer.alloc(1_300_000, 0xb0);
  const path = write(Buffer.concat([degrees, Buffer.from("\r\n\n"), long, Buffer.from("\n"), degrees]));
  const lines = await Array.fromAsync(readByteLines(path), (line) => Buffer.from(line));
  expect(lines.map(({ length }) => length)).toEqual([7, 0, 1_300_000, 7]);
  expect(lines.map((line) => line.equals(line.length > 7 ? long : degrees))).toEqual([
    true,
    false,
    true,
    true,
  ]);
});

it("refuses a line that is not UTF-8", async () => {
  const path = write(Buffer.from("Grüße\nM\xfcller\n", "latin1"));
  await expect(Array.fromAsync(readLines(path))).rejects.toThrow(`line 1 of ${path} is not UTF-8`);
  const text = write(Buffer.from("Grüße\r\n\nMüller"));
  expect(await Array.fromAsync(readLines(text))).toEqual(["Grüße", "", "Müller"]);
});
