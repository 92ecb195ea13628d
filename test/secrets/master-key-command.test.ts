/** Programs that print a master key. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readConfig } from "../../src/config.ts";
import { readKeyFromCommand } from "../../src/secrets/master-key-command.ts";
import { storeSettings } from "../../src/settings/store-settings.ts";
import { storageError } from "../support/storage-error.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

const key = "5a".repeat(32);

/** A command of Node that runs a script. */
function node(script: string): string[] {
  return [process.execPath, "-e", script];
}

describe("a command that prints the master key", () => {
  it("may end its output with a line break", () => {
    expect(readKeyFromCommand("--x", ["printf", key])).toBe(key);
    expect(readKeyFromCommand("--x", ["echo", key])).toBe(key);
  });

  it("runs without a shell, and reads no standard input", () => {
    const dataDir = makeTemporaryDirectory();
    const trap = join(dataDir, "trap");
    expect(() => readKeyFromCommand("--x", ["echo", `${key}; touch ${trap}`])).toThrow(
      storageError(/did not print a master key/),
    );
    expect(existsSync(trap)).toBe(false);
    const readInput = `process.stdin.on("end", () => console.log("${key}")).resume()`;
    expect(readKeyFromCommand("--x", node(readInput))).toBe(key);
  });

  it.each([
    ["prints a shorter key", ["echo", "abcd"], /did not print a master key; expected 64/],
    ["prints two keys", ["echo", `${key} ${key}`], /did not print a master key/],
    ["prints more than a kilobyte", node("console.log('secret'.repeat(200))"), /more than 1024 bytes/],
    ["fails", node("console.log('secret'); process.exit(3)"), /ended with exit code 3/],
    ["is killed", node("console.log('secret'); process.kill(process.pid, 'SIGKILL')"), /ended with SIGKILL/],
    ["does not exist", ["/none/secret-tool"], /cannot be run/],
  ])("is not used if it %s, and its output stays hidden", (_what, command, message) => {
    const read = () => readKeyFromCommand("--master-key-command", command);
    expect(read).toThrow(storageError(message));
    expect(read).toThrow(/^--master-key-command: /);
    expect(read).not.toThrow(/secretsecret|abcd|5a5a/);
  });

  it("replaces the file, which an empty variable unsets", () => {
    const args = ["--data-dir", makeTemporaryDirectory(), "--master-key-command", `echo ${key}`];
    const { masterKey } = storeSettings(readConfig(args, { QSP_MASTER_KEY_FILE: "" }));
    expect(masterKey).toMatchObject({ kind: "values", current: key });
  });

  it.each([
    [["--master-key-command", "echo x", "--master-key-file", "k"], /use only one of/],
    [["--master-key-next-command", "echo x"], /needs --master-key-command/],
  ])("is refused beside another source, or for the next key alone: %s", (args, message) => {
    expect(() => readConfig(args, {})).toThrow(message);
  });
});
