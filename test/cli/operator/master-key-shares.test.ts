/** `qsp master-key split` and `combine`: a backup of the master key on paper. */
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { nameMasterKey } from "../../../src/crypto/sealing.ts";
import { readKeyFile } from "../../../src/secrets/master-key.ts";
import { makeStoreDirectory } from "../../support/empty-store.ts";
import { makeTemporaryDirectory } from "../../support/temporary-directory.ts";
import { runCommand } from "./command-line.ts";

const noSettings = { settings: [] };

/** A store whose master key is split, and where the shares are. */
async function splitNew(shares = 5, threshold = 3) {
  const directory = await makeStoreDirectory();
  const name = join(makeTemporaryDirectory(), "share");
  const words = ["master-key", "split", name, "--shares", `${shares}`, "--threshold", `${threshold}`];
  const place = { settings: ["--data-dir", directory] };
  return {
    directory,
    place,
    words,
    path: (number: number) => `${name}-${number}.txt`,
    key: join(directory, "master.key"),
    split: await runCommand(place, words),
  };
}

/** Runs `combine`; standard input is empty if omitted. */
async function combine(paths: readonly string[], input = "") {
  const out = join(makeTemporaryDirectory(), "restored.key");
  const run = await runCommand(noSettings, ["master-key", "combine", ...paths, "--out", out], input);
  return { ...run, out };
}

describe("qsp master-key split and combine", () => {
  it("restore the master key from three of five shares, under the same ID", async () => {
    const { path, key, split } = await splitNew();
    const keyId = nameMasterKey(readKeyFile(key) ?? new Uint8Array());
    expect(split.code).toBe(0);
    expect(split.stdout).toContain(
      `Split the master key ${keyId} into ${path(1)} to ${path(5)}; any 3 of them`,
    );
    const { code, stdout, out } = await combine([path(1), path(3), path(5)]);
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: `${out}: the master key ${keyId}, restored from 3 shares\n`,
    });
    expect(readFileSync(out)).toEqual(readFileSync(key));
    expect(statSync(out).mode & 0o777).toBe(0o600);
  });

  it("write each share to a file that only its owner can read", async () => {
    const { path } = await splitNew(2, 2);
    expect(readFileSync(path(2), "utf8")).toMatch(
      /^# Share 2 of 2 \(set [0-9a-f]{8}\) of the master key [0-9a-f]{32}\.\n/,
    );
    expect(statSync(path(2)).mode & 0o777).toBe(0o600);
  });

  it("read typed shares from standard input, separated by blank lines or comments", async () => {
    const { path, key } = await splitNew(3, 2);
    const [one, two] = [1, 2].map((number) => readFileSync(path(number), "utf8").replaceAll(/^#.*\n/gm, ""));
    for (const input of [`${one}\n${two}`, `# first\n${one}# second\n${two?.toLowerCase()}`]) {
      const { code, out } = await combine([], input);
      expect(code).toBe(0);
      expect(readFileSync(out)).toEqual(readFileSync(key));
    }
  });

  it("say which share is mistyped, without quoting it", async () => {
    const { path } = await splitNew();
    const text = readFileSync(path(2), "utf8");
    const wrong = text.replace(/([0-9A-Z])\n$/, (_all, last) => `${last === "0" ? "1" : "0"}\n`);
    writeFileSync(path(2), wrong);
    const fault = "its checksum does not match: compare each character with the paper";
    const files = await combine([path(1), path(2), path(3)]);
    expect(files).toMatchObject({ code: 2, stderr: `qsp: ${path(2)}: ${fault}\n` });
    const typed = await combine([], `${readFileSync(path(1), "utf8")}\n${wrong}`);
    expect(typed).toMatchObject({ code: 2, stderr: `qsp: share 2 in standard input (line 10): ${fault}\n` });
    expect(existsSync(files.out) || existsSync(typed.out)).toBe(false);
  });

  it("refuse too few shares, the same share twice, shares of two sets, and a file without a share", async () => {
    const [mine, other] = [await splitNew(), await splitNew()];
    const text = readFileSync(mine.path(1), "utf8");
    const [, set] = /set ([0-9a-f]+)/.exec(text) ?? [];
    const refusals = [
      await combine([mine.path(1), mine.path(2)]),
      await combine([mine.path(1), mine.path(1), mine.path(2)]),
      await combine([mine.path(1), mine.path(2), other.path(3)]),
      await combine([], "# nothing\n"),
    ];
    expect(refusals.map(({ code, stdout }) => ({ code, stdout }))).toEqual(
      refusals.map(() => ({ code: 2, stdout: "" })),
    );
    expect(refusals.map(({ stderr }) => stderr)).toEqual([
      `qsp: 2 shares of set ${set} cannot restore the key; it takes 3: add 1 more\n`,
      `qsp: ${mine.path(1)} and ${mine.path(1)} are the same share, number 1\n`,
      expect.stringContaining(`, and ${mine.path(1)} of set ${set}; all shares must be of one set`),
      "qsp: standard input contains no share\n",
    ]);
  });

  it("overwrite neither a key nor a share", async () => {
    const { place, words, path, key } = await splitNew(2, 2);
    const shares = [path(1), path(2)];
    const combined = await runCommand(noSettings, ["master-key", "combine", ...shares, "--out", key]);
    expect(combined).toMatchObject({
      code: 2,
      stderr: `qsp: ${key} already exists; name another file for --out\n`,
    });
    rmSync(path(1));
    const again = await runCommand(place, words);
    expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining(`${path(2)} already exists`) });
    expect(existsSync(path(1))).toBe(false);
  });

  it.each([
    [["--shares", "5"], "--threshold is missing"],
    [["--threshold", "3"], "--shares is missing"],
    [["--shares", "2", "--threshold", "3"], "--threshold 3 is more than the 2 shares"],
    [["--shares", "100", "--threshold", "3"], "--shares"],
    [["--shares", "5", "--threshold", "1"], "--threshold"],
  ])("refuse a split with %s", async (options, reason) => {
    const { place, path } = await splitNew();
    const run = await runCommand(place, ["master-key", "split", path(0), ...options]);
    expect(run).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(reason) });
  });

  it("restore the key that a rotation has made, and refuse to split during one", async () => {
    const { directory, place, words, path, key } = await splitNew(2, 2);
    for (const number of [1, 2]) rmSync(path(number));
    writeFileSync(`${key}.next`, `${"0f".repeat(32)}\n`, { mode: 0o600 });
    expect(await runCommand(place, words)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("a rotation of the master key has begun"),
    });
    expect((await runCommand(place, ["master-key", "rotate"])).code).toBe(0);
    expect((await runCommand(place, words)).code).toBe(0);
    const { out } = await combine([path(1), path(2)]);
    expect(readFileSync(out, "utf8")).toBe(`${"0f".repeat(32)}\n`);
    rmSync(key);
    const verified = await runCommand(noSettings, [
      ...["store", "verify", "--data-dir", directory, "--master-key-file", out],
    ]);
    expect(verified).toMatchObject({ code: 0, stdout: expect.stringContaining("The store is intact") });
  });
});
