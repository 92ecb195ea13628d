/** deploy/systemd/qsp, which operators install as /usr/local/sbin/qsp. */
import { execFile } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { main } from "../support/program.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { readDeployed } from "./unit-file.ts";

/** A machine for one test: the wrapper, with test folders in place of system folders. */
function install({ settings, node }: { settings?: string; node?: string } = {}) {
  const directory = makeTemporaryDirectory();
  const bin = join(directory, "opt/node_modules/.bin");
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, "node"), node ?? `#!/bin/sh\nprintf '%s\\n' "$@"\nenv -0 | tr '\\n\\0' '~\\n'\n`);
  chmodSync(join(bin, "node"), 0o755);
  if (settings !== undefined) writeFileSync(join(directory, "server.env"), settings);
  const wrapper = join(directory, "qsp");
  const text = readDeployed("systemd/qsp")
    .replace(/^project=.*$/m, `project=${join(directory, "opt")}`)
    .replace(/^settings=.*$/m, `settings=${join(directory, "server.env")}`)
    .replace(/^data=.*$/m, `data=${join(directory, "data")}`)
    .replace(/^key=.*$/m, `key=${join(directory, "key")}`);
  writeFileSync(wrapper, text);
  const start = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
      const options = { cwd: directory, env: { PATH: "/usr/bin:/bin", ...env } };
      const child = execFile("/bin/sh", [wrapper, ...args], options, (_error, stdout, stderr) =>
        resolve({ code: child.exitCode ?? -1, stdout, stderr }),
      );
    });
  return { directory, start };
}

/** The lines that the program started by `install` prints, with its environment. */
function readLines(stdout: string): string[] {
  return stdout.split("\n").filter((line) => !/^(PATH|PWD|OLDPWD|SHLVL|_|)=|^$/.test(line));
}

describe("the wrapper script", () => {
  it("runs the program on the project's Node, with the store and key of the unit", async () => {
    const { directory, start } = install();
    const { code, stdout } = await start(["user", "add", "a b", ""]);
    expect(code).toBe(0);
    expect(stdout.split("\n").slice(0, 5)).toEqual([
      join(directory, "opt/dist/main.js"),
      ...["user", "add", "a b", ""],
    ]);
    expect(readLines(stdout)).toContain(`QSP_DATA_DIR=${join(directory, "data")}`);
    expect(readLines(stdout)).toContain(`QSP_MASTER_KEY_FILE=${join(directory, "key")}`);
  });

  it("works: it creates a store, and finds it again", async () => {
    const node = `#!/bin/sh\nshift\nexec '${process.execPath}' '${main}' "$@"\n`;
    const { directory, start } = install({ node, settings: "QSP_CRYPTO_PROVIDER=openssl\n" });
    expect(await start(["store", "init"])).toMatchObject({ code: 0 });
    expect(existsSync(join(directory, "data/qsp.db"))).toBe(true);
    expect(existsSync(join(directory, "key"))).toBe(true);
    expect(await start(["audit", "verify"])).toMatchObject({ code: 0 });
    expect((await start(["no-such-verb"])).code).toBe(2);
  });

  it.each<[string, string, string | undefined]>([
    ["a plain value", "QSP_PORT=81", "81"],
    ["spaces around it", "  QSP_PORT \t=  81 \t", "81"],
    ["a Windows line ending", "QSP_PORT=81\r\n", "81"],
    ["double quotes, which keep spaces", 'QSP_PORT=" 81 "', " 81 "],
    ["single quotes", "QSP_PORT='8 \"1'", '8 "1'],
    ["quotes in the middle", "QSP_PORT=8'1\"", "8'1\""],
    ["an equals sign", "QSP_PORT=a=b", "a=b"],
    ["nothing", "QSP_PORT=", ""],
    ["a comment", "# QSP_PORT=81\n ;QSP_PORT=82", undefined],
    ["a hash in a value", "QSP_PORT=8#1", "8#1"],
    ["the last of two values", "QSP_PORT=81\nQSP_PORT=82\n", "82"],
    ["a last line without a newline", "\n\nQSP_PORT=81", "81"],
  ])("parses the server's settings like systemd: %s", async (_what, settings, value) => {
    const { stdout, code } = await install({ settings }).start([]);
    const line = readLines(stdout).find((one) => one.startsWith("QSP_PORT="));
    expect([code, line]).toEqual([0, value === undefined ? undefined : `QSP_PORT=${value}`]);
  });

  it.each([
    "$(touch run)",
    "`touch run`",
    "; touch run",
    "$PATH",
    "*",
    "a'$(touch run)'b",
    "$(touch run",
    "& touch run #",
    "-n",
    "%s%n",
  ])("never executes or changes settings: %s", async (value) => {
    const settings = `QSP_HOST=${value}\nPGPASSWORD="${value}"\n`;
    const { directory, start } = install({ settings });
    const { stdout } = await start([]);
    expect(readLines(stdout)).toEqual(expect.arrayContaining([`QSP_HOST=${value}`, `PGPASSWORD=${value}`]));
    expect(existsSync(join(directory, "run"))).toBe(false);
  });

  it("ignores variables that change which code runs", async () => {
    const names = ["LD_PRELOAD", "NODE_OPTIONS", "PATH", "IFS", "BASH_ENV", "HOME", "node", "project"];
    const settings = names.map((name) => `${name}=/tmp/evil`).join("\n");
    const { stdout, code } = await install({ settings }).start([]);
    expect([code, stdout.includes("evil")]).toEqual([0, false]);
  });

  it.each([
    ["no value", "QSP_HOST"],
    ["an invalid name", "QSP_A;touch run=1"],
    ["a command in a name", "QSP_$(touch run)=secret"],
    ["a shell keyword", "export QSP_HOST=secret"],
    ["a backslash", "PGPASSWORD=secret\\"],
    ["an unclosed quote", 'PGPASSWORD="secret'],
    ["quotes within quotes", "PGPASSWORD='secret''more'"],
  ])("rejects an unreadable line by its number, without its content: %s", async (_what, line) => {
    const { directory, start } = install({ settings: `# settings\n${line}\n` });
    const { code, stdout, stderr } = await start(["user", "list"]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(/^qsp: line 2 of \S+server\.env .+\n$/);
    expect(stderr).not.toContain("secret");
    expect(existsSync(join(directory, "run"))).toBe(false);
  });

  it("keeps what its caller sets", async () => {
    const settings = "QSP_DATA_DIR=/from/file\nQSP_DATA_DIR=/from/file\nQSP_PORT=81\n";
    const { start } = install({ settings });
    const env = { QSP_DATA_DIR: "/from/caller", QSP_MASTER_KEY_FILE: "/key/of/caller" };
    const lines = readLines((await start([], env)).stdout);
    const kept = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    expect(lines).toEqual(expect.arrayContaining([...kept, "QSP_PORT=81"]));
    expect(readLines((await start([])).stdout)).toContain("QSP_DATA_DIR=/from/file");
  });

  it("passes no key file if the settings have the key or a command, because the program accepts only one of them", async () => {
    const { stdout } = await install({ settings: `QSP_MASTER_KEY=${"0f".repeat(32)}\n` }).start([]);
    expect(stdout).not.toContain("QSP_MASTER_KEY_FILE");
    const settings = "QSP_MASTER_KEY_FILE=\nQSP_MASTER_KEY_COMMAND=echo 1\n";
    const lines = readLines((await install({ settings }).start([])).stdout);
    expect(lines).toEqual(expect.arrayContaining(["QSP_MASTER_KEY_FILE=", "QSP_MASTER_KEY_COMMAND=echo 1"]));
  });

  it("explains what to do if the project is not installed", async () => {
    const { directory, start } = install();
    rmSync(join(directory, "opt"), { recursive: true });
    expect(await start([])).toMatchObject({ code: 2, stderr: expect.stringContaining("node src/setup.mjs") });
  });
});
