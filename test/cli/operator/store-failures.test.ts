/** Errors for a store that exists but cannot be used: one sentence, and exit code 2, or 4 if a retry may help. */
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { describeSmallDisks, makeSmallDisk } from "../../faults/small-disk.ts";
import { makeSqlitePlace, type Place } from "../../support/on-both.ts";
import { type Run, runToEndHere } from "../../support/run-here.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";

const timeout = 180_000;
const serve = ["serve", "--port", "0"];

describe("a store that cannot be reached", { timeout }, () => {
  it.skipIf(process.getuid?.() === 0)("is not reported as missing if access is denied", async () => {
    const place = await makeUsed(await makeSqlitePlace());
    chmodSync(place.directory, 0);
    const exit = await runToEndHere(["audit", "verify", ...place.settings]);
    chmodSync(place.directory, 0o700);
    expectRefused(exit, /cannot be read: permission denied/);
  });
});

describeSmallDisks("a store on a read-only file system", () => {
  it("is reported with the reason by a start and by commands", { timeout }, async () => {
    const disk = makeSmallDisk("16m");
    const place = await makeUsed(await makeSqlitePlace());
    cpSync(place.directory, disk, { recursive: true });
    execFileSync("mount", ["-o", "remount,ro", disk]);
    for (const words of [
      serve,
      ["store", "verify"],
      ["audit", "verify"],
      ["backup", join(makeTemporaryDirectory(), "b")],
    ])
      expectRefused(
        await runToEndHere([...words, "--data-dir", disk]),
        /the store .*qsp\.db cannot be opened: its file system is read-only$/,
      );
  });
});

/** Creates a store and uses it. */
async function makeUsed(place: Place): Promise<Place> {
  await (await place.open()).close();
  return place;
}

function expectRefused({ code, stdout, stderr }: Run, sentence: RegExp, expected = 2): void {
  const lines = stderr.split("\n").filter((line) => !/ of .* (rows|entries) /.test(line));
  expect({ code, stdout, lines }).toEqual({
    code: expected,
    stdout: "",
    lines: [expect.stringMatching(sentence), ""],
  });
  expect(lines[0]).toMatch(/^qsp: /);
}
