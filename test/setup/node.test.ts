/** The Node 26 from npm: linked where everything expects it, and explained if it does not start. */
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { nodePackage as installedPackage } from "../../src/setup/find-node.mjs";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { copySources, root } from "./copies.ts";

const nodePackage = installedPackage ?? "";
const checkout = makeTemporaryDirectory(afterAll);
const modules = join(checkout, "node_modules");
const link = join(modules, ".bin/node");
/** Where npm installs its Node. */
const packaged = join(modules, nodePackage, "bin/node");

/** The packages as npm 9 and 10 install them with --ignore-scripts: without the link to Node. */
beforeAll(() => {
  copySources(checkout, "dist");
  mkdirSync(modules);
  for (const name of readdirSync(join(root, "node_modules")))
    if (name !== ".bin" && name !== nodePackage)
      symlinkSync(join(root, "node_modules", name), join(modules, name));
}, 180_000);

beforeEach(() => {
  rmSync(join(modules, ".bin"), { recursive: true, force: true });
  rmSync(join(modules, nodePackage), { recursive: true, force: true });
});

/** Installs a program in place of npm's Node. */
function installNode(script: string): void {
  mkdirSync(join(packaged, ".."), { recursive: true });
  writeFileSync(packaged, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
}

/** Runs what npm scripts run first, on the given version of Node. */
function setUp(version: string, env: Readonly<Record<string, string>> = {}) {
  const pretend = `Object.defineProperty(process, "version", { value: ${JSON.stringify(version)} })`;
  const { status, stderr } = spawnSync(
    process.execPath,
    [`--import=data:text/javascript,${encodeURIComponent(pretend)}`, join(checkout, "src/setup.mjs")],
    { encoding: "utf8", env: { ...process.env, ...env } },
  );
  return { status, stderr };
}

describe.skipIf(process.platform === "win32")("the Node from npm", { timeout: 180_000 }, () => {
  it("is linked in node_modules/.bin if npm did not link it, and again if the link is broken", () => {
    installNode(`exec ${process.execPath} "$@"`);
    for (let starts = 0; starts < 2; starts++) expect(setUp("v20.19.2")).toEqual({ status: 0, stderr: "" });
    expect(readlinkSync(link)).toBe(`../${nodePackage}/bin/node`);
    rmSync(link);
    symlinkSync("../node-of-old/bin/node", link);
    expect(setUp("v20.19.2")).toEqual({ status: 0, stderr: "" });
    expect(realpathSync(link)).toBe(realpathSync(packaged));
  });

  it("is explained with the loader's message if a library is missing", () => {
    const loader = "error while loading shared libraries: libatomic.so.1: cannot open shared object file";
    installNode(`echo "$0: ${loader}" >&2; exit 127`);
    const { status, stderr } = setUp("v20.19.2");
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: expect.stringMatching(
        /^setup: the Node\.js from npm does not start: [^\n]*libatomic\.so\.1: cannot open[^\n]*; install libatomic1 on Debian and Ubuntu, [^\n]*\n$/,
      ),
    });
    expect(existsSync(link)).toBe(false);
  });

  it("does not hide the machine's Node 26 if it does not start", () => {
    installNode("exit 127");
    mkdirSync(join(link, ".."));
    symlinkSync(packaged, link);
    expect(setUp(process.version)).toEqual({ status: 0, stderr: "" });
    expect(existsSync(link)).toBe(false);
  });

  it("is installed by npm pack --dry-run too, although npm passes that option to the npm processes that it runs", () => {
    const [npm, installed] = [join(checkout, "npm-cli.js"), join(modules, ".package-lock.json")];
    renameSync(installed, `${installed}.kept`);
    onTestFinished(() => renameSync(`${installed}.kept`, installed));
    writeFileSync(npm, "console.error(process.argv.slice(2).join(' ')); process.exit(1);");
    const { stderr } = setUp("v20.19.2", { npm_execpath: npm, npm_config_dry_run: "true" });
    expect(stderr).toMatch(/^ci .*--dry-run=false/m);
  });

  it("is reported as missing in one sentence if npm has none for this machine", () => {
    const { status, stderr } = setUp("v20.19.2");
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: expect.stringMatching(/^setup: npm has no Node\.js 26 package for [^\n]*\n$/),
    });
  });
});
