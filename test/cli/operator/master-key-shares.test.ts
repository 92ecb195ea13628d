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
    expect(split.stdout).toContain(`the master key ${keyId} into ${path(1)} to ${path(5)}; any 3 of them`);
    expect(readFileSync(path(2), "utf8")).toMatch(
      new RegExp(`^# Share 2 of 5 \\(set [0-9a-f]{8}\\) of the master key ${keyId}\\.\n`),
    );
    const { code, stdout, out } = await combine([path(1), path(3), path(5)]);
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: `${out}: the master key ${keyId}, restored from 3 shares\n`,
    });
    expect(readFileSync(out)).toEqual(readFileSync(key));
    for (const file of [path(2), out]) expect(statSync(file).mode & 0o777).toBe(0o600);
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
    for (const refused of refusals) expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refusals.map(({ stderr }) => stderr)).toEqual([
      `qsp: 2 shares of set ${set} cannot restore the key; it takes 3: add 1 more\n`,
      `qsp: ${mine.path(1)} and ${mine.path(1)} are the same share, number 1\n`,
      expect.stringContaining(`, and ${mine.path(1)} of set ${set}; all shares must be of one set`),
      "qsp: standard input contains no share\n",
    ]);
  });

  it("do not overwrite a key", async () => {
    const { path, key } = await splitNew(2, 2);
    const shares = [path(1), path(2)];
    const combined = await runCommand(noSettings, ["master-key", "combine", ...shares, "--out", key]);
    expect(combined).toMatchObject({ code: 2, stderr: expect.stringContaining(`${key} already exists`) });
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
    const verify = ["store", "verify", "--data-dir", directory, "--master-key-file", out];
    expect((await runCommand(noSettings, verify)).code).toBe(0);
  });
});
