/** `./qsp` in a clone: which Node it runs, from any folder, and how its server ends. */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  copyFileSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { startQsp } from "../cli/qsp.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

const root = join(import.meta.dirname, "../..");
const folder = realpathSync(makeTemporaryDirectory(afterAll));
const clone = join(folder, "my clone");
const elsewhere = join(folder, "elsewhere");
/** The programs that the launcher needs, without Node. */
const tools = join(folder, "tools");
mkdirSync(tools);
for (const name of ["sh", "dirname", "readlink"]) {
  const { stdout } = spawnSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" });
  symlinkSync(stdout.trim(), join(tools, name));
}

/** A clone before its first start, and a folder with the machine's own Node. */
beforeEach(() => {
  for (const path of [clone, elsewhere]) rmSync(path, { recursive: true, force: true });
  mkdirSync(join(clone, "node_modules/.bin"), { recursive: true });
  copyFileSync(join(root, "qsp"), join(clone, "qsp"));
  mkdirSync(elsewhere);
  writeNode(join(elsewhere, "node"), "the machine's");
});

/** Creates a program that prints its name and its arguments. */
function writeNode(path: string, name: string): void {
  writeFileSync(path, `#!/bin/sh\nprintf '%s\\n' "${name}" "$@"\n`, { mode: 0o755 });
}

function writeOwnNode(): void {
  writeNode(join(clone, "node_modules/.bin/node"), "its own");
  mkdirSync(join(clone, "dist"));
  writeFileSync(join(clone, "dist/main.js"), "");
}

function start(path: string, args: readonly string[], { cwd = clone, PATH = `${tools}:${elsewhere}` } = {}) {
  const { status, stdout, stderr } = spawnSync(path, args, { cwd, env: { PATH }, encoding: "utf8" });
  return { status, lines: stdout.split("\n").slice(0, -1), stderr };
}

const main = join(clone, "src/qsp.mjs");

describe.skipIf(process.platform === "win32")("./qsp", () => {
  it("runs the program with its arguments on the Node that npm installed", () => {
    writeOwnNode();
    expect(start("./qsp", ["sign", "a file", ""])).toEqual({
      status: 0,
      lines: ["its own", main, "sign", "a file", ""],
      stderr: "",
    });
  });

  it("runs it on the machine's own Node before the first start", () => {
    expect(start("./qsp", ["help"]).lines).toEqual(["the machine's", main, "help"]);
  });

  it("lets the first start explain why a Node does not start", () => {
    writeFileSync(join(clone, "node_modules/.bin/node"), "#!/bin/sh\nexit 127\n", { mode: 0o755 });
    expect(start("./qsp", ["help"]).lines[0]).toBe("the machine's");
  });

  it("does not need the machine's Node after that, and knows its commit", () => {
    const link = join(elsewhere, "qsp");
    symlinkSync(join(root, "qsp"), link);
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    expect(start(link, ["--version"], { cwd: elsewhere, PATH: tools })).toEqual({
      status: 0,
      lines: [expect.stringMatching(`^${RegExp.escape(version)} \\([0-9a-f]{12}(-dirty)?\\)$`)],
      stderr: "",
    });
  });

  it("reports in one sentence that Node is missing", () => {
    expect(start("./qsp", ["help"], { PATH: tools })).toEqual({
      status: 2,
      lines: [],
      stderr: "qsp: Node.js is missing; install version 20 or newer and try again\n",
    });
  });

  it("works from another folder, by path and by name", () => {
    writeOwnNode();
    const PATH = `${tools}:${clone}`;
    for (const path of [join(clone, "qsp"), "../my clone/qsp", "qsp"])
      expect(start(path, ["help"], { cwd: elsewhere, PATH }).lines, path).toEqual(["its own", main, "help"]);
  });

  it("works through chains of links, absolute and relative", () => {
    writeOwnNode();
    symlinkSync("../my clone/qsp", join(elsewhere, "relative"));
    symlinkSync(join(elsewhere, "relative"), join(elsewhere, "qsp"));
    symlinkSync("my clone", join(folder, "linked"));
    for (const path of [join(elsewhere, "qsp"), "./relative", join(folder, "linked/qsp")])
      expect(start(path, ["help"], { cwd: elsewhere }).lines, path).toEqual(["its own", main, "help"]);
  });
});

describe.skipIf(process.platform === "win32")("a launcher's server", () => {
  it("shuts down gracefully when the launcher is killed", async () => {
    const cwd = makeTemporaryDirectory();
    const { child, end } = startQsp(["serve", "--port", "0", "--data-dir", cwd], {
      cwd,
      isInstalled: true,
      hasOwnGroup: true,
    });
    onTestFinished(() => {
      try {
        process.kill(-(child.pid ?? 0), "SIGKILL");
      } catch {
        // The server has ended, as it should.
      }
    });
    let output = "";
    while (!output.includes("is ready on")) output += (await once(child.stdout ?? child, "data"))[0];
    child.kill("SIGKILL");
    // The server shares this standard output, so "close" comes when the server has ended.
    const { stdout, stderr } = await end;
    expect(stdout + stderr).toContain("stopping;");
  });
});
