import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { readText } from "../src/cli/files/read.ts";
import { makeDirectories } from "../src/make-directories.ts";
import { FileTooLargeError, readFileWithin } from "../src/read-file.ts";
import { masterKeyIn, openKeyring } from "../src/secrets/master-key.ts";
import { runQsp } from "./cli/qsp.ts";
import { storageError } from "./support/storage-error.ts";
import { makeTemporaryDirectory } from "./support/temporary-directory.ts";

describe("a file read up to a limit", () => {
  it("is read whole at the limit, and refused one byte above it", () => {
    const path = join(makeTemporaryDirectory(), "file");
    writeFileSync(path, Buffer.alloc(200_000, 7));
    expect(readFileWithin(path, 200_000)).toEqual(Buffer.alloc(200_000, 7));
    expect(() => readFileWithin(path, 199_999)).toThrow(FileTooLargeError);
  });

  it.skipIf(process.platform === "win32")("is refused if it never ends", () => {
    expect(() => readFileWithin("/dev/zero", 1000)).toThrow("/dev/zero is larger than 1000 bytes");
    expect(() => readText("/dev/zero")).toThrow("/dev/zero is larger than 4194304 bytes");
    const dataDir = makeTemporaryDirectory();
    symlinkSync("/dev/zero", join(dataDir, "master.key"));
    expect(() => openKeyring(masterKeyIn(dataDir), false)).toThrow(
      storageError(/master\.key is larger than/),
    );
  });

  it.skipIf(process.platform === "win32")("is refused if it is a pipe with more data", async () => {
    const path = join(makeTemporaryDirectory(), "pipe");
    await once(spawn("mkfifo", [path]), "close");
    const writer = spawn("sh", ["-c", `yes >'${path}'`]);
    expect(() => readFileWithin(path, 100_000)).toThrow(FileTooLargeError);
    await once(writer, "close");
  });

  it("waits for more bytes on a standard input that does not block", async () => {
    const readText = new URL("../src/cli/files/read.ts", import.meta.url).href;
    // Node makes the socket non-blocking.
    const read = `process.stdin.pause();
      const { readText } = await import(${JSON.stringify(readText)});
      process.stdout.write("ready");
      process.stdout.write(readText("-"));`;
    const program = spawn(process.execPath, ["--input-type=module", "-e", read], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    let printed = "";
    program.stdout.on("data", (chunk) => {
      printed += chunk;
    });
    await once(program.stdout, "data");
    // Meanwhile, it finds nothing to read.
    await setTimeout(200);
    program.stdin.end(", late");
    await once(program, "close");
    expect(printed).toBe("ready, late");
  });
});

describe("makeDirectories", () => {
  it("creates missing directories for the owner alone, and lists them, deepest first", () => {
    const root = makeTemporaryDirectory();
    mkdirSync(join(root, "a"), { mode: 0o755 });
    expect(makeDirectories(join(root, "a/b/c"))).toEqual([join(root, "a/b/c"), join(root, "a/b")]);
    expect(statSync(join(root, "a/b")).mode & 0o777).toBe(0o700);
    expect(makeDirectories(join(root, "a/b/c"))).toEqual([]);
  });

  it("rejects a path through a file", () => {
    const root = makeTemporaryDirectory();
    writeFileSync(join(root, "file"), "");
    expect(() => makeDirectories(join(root, "file/b"))).toThrow("EEXIST");
  });
});

// In /proc, Node's own recursive mkdir never returns.
describe.runIf(process.platform === "linux")("where nobody can create a directory,", () => {
  it.each([
    ["store init", ["store", "init", "--data-dir", "/proc/x"]],
    ["serve", ["serve", "--port", "0", "--data-dir", "/proc/x/y"]],
    ["ca init", ["ca", "init", "--data-dir", "/proc/x"]],
    ["restore", ["restore", "/dev/null", "--data-dir", "/proc/x"]],
  ])("%s fails with one sentence that names it", { timeout: 60_000 }, async (_, args) => {
    const { code, stderr } = await runQsp(args, { cwd: makeTemporaryDirectory() });
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(/^qsp: [^\n]+\n$/) });
  });
});
