import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { readConfig } from "../../src/config.ts";
import { type MasterKeySource, masterKeyIn, openKeyring } from "../../src/secrets/master-key.ts";
import { readKeyFromCommand } from "../../src/secrets/master-key-command.ts";
import { storeSettings } from "../../src/settings/store-settings.ts";
import { storageError } from "../support/storage-error.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

const digits = `${"0f".repeat(32)}\n`;
const key = "5a".repeat(32);

describe("the master key", () => {
  it("is created on the first start: 64 hexadecimal digits, readable only by its owner", () => {
    const dataDir = join(makeTemporaryDirectory(), "new", "directory");
    const key = loadMasterKey(masterKeyIn(dataDir));
    const path = join(dataDir, "master.key");
    expect(readFileSync(path, "utf8")).toBe(`${Buffer.from(key).toString("hex")}\n`);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(dataDir).mode & 0o777).toBe(0o700);
  });

  it("differs between data directories, stays the same, and is not created if the operator has a file", () => {
    const [one, other] = [makeTemporaryDirectory(), makeTemporaryDirectory()];
    expect(loadMasterKey(masterKeyIn(one))).not.toEqual(loadMasterKey(masterKeyIn(other)));
    expect(loadMasterKey(masterKeyIn(one))).toEqual(loadMasterKey(masterKeyIn(one)));
    const dataDir = makeTemporaryDirectory();
    const path = writeKey(join(dataDir, "mine.key"), digits);
    expect(Buffer.from(loadMasterKey({ kind: "file", path })).toString("hex")).toBe("0f".repeat(32));
    expect(existsSync(join(dataDir, "master.key"))).toBe(false);
  });

  const notAKey = /master\.key is not a master key/;
  const open = /set its mode to 0600/;
  it.each<[what: string, make: (path: string) => unknown, says: RegExp]>([
    ["is empty", (path) => writeKey(path, ""), notAKey],
    ["has 63 digits", (path) => writeKey(path, "0".repeat(63)), notAKey],
    ["has 65 digits", (path) => writeKey(path, "0".repeat(65)), notAKey],
    ["has no digits", (path) => writeKey(path, "x".repeat(64)), notAKey],
    ["has 32 bytes", (path) => writeKey(path, "\u0001".repeat(32)), notAKey],
    ["has the mode 0644", (path) => chmodSync(writeKey(path, digits), 0o644), open],
    ["has the mode 0640", (path) => chmodSync(writeKey(path, digits), 0o640), open],
    ["has the mode 0604", (path) => chmodSync(writeKey(path, digits), 0o604), open],
    ["has the mode 0660", (path) => chmodSync(writeKey(path, digits), 0o660), open],
    ["is a directory", (path) => mkdirSync(path), /cannot be read/],
  ])("is rejected in one sentence if its file %s", (_what, make, says) => {
    const dataDir = makeTemporaryDirectory();
    make(join(dataDir, "master.key"));
    expect(() => loadMasterKey(masterKeyIn(dataDir))).toThrow(storageError(says));
  });

  it.skipIf(process.geteuid?.() !== 0)(
    "is rejected by root if it belongs to neither root nor its directory's owner (needs root)",
    () => {
      const dataDir = makeTemporaryDirectory();
      const path = writeKey(join(dataDir, "master.key"), digits);
      const load = () => loadMasterKey({ kind: "file", path });
      chownSync(path, 4242, 4242);
      expect(load).toThrow(storageError(/master\.key belongs to another user \(ID 4242\)/));
      chownSync(dataDir, 4242, 4242);
      expect(load()).toHaveLength(32);
    },
  );

  // As systemd and Kubernetes provide it. Only root can create such a file, and seteuid requires root.
  it.skipIf(process.geteuid?.() !== 0).each([
    [0o440, true],
    [0o640, true],
    [0o444, false],
    [0o460, false],
    [0o450, false],
  ])(
    "owned by root with mode %o, read by a server that is not root, is accepted: %s (needs root)",
    (mode, isAccepted) => {
      const dataDir = makeTemporaryDirectory();
      const path = writeKey(join(dataDir, "master.key"), digits);
      chmodSync(dataDir, 0o755);
      chmodSync(path, mode);
      const load = () => loadMasterKey({ kind: "file", path });
      // The group stays root.
      process.seteuid?.(65_534);
      onTestFinished(() => process.seteuid?.(0));
      if (isAccepted) expect(load()).toHaveLength(32);
      else expect(load).toThrow(storageError(/set its mode to 0600/));
    },
  );
});

/** Reads the master key as startup with a new store does. */
function loadMasterKey(source: MasterKeySource): Uint8Array {
  return openKeyring(source, true).current;
}

function writeKey(path: string, content: string): string {
  writeFileSync(path, content, { mode: 0o600 });
  return path;
}

/** A command of Node that runs a script. */
function node(script: string): string[] {
  return [process.execPath, "-e", script];
}

describe("a command that prints the master key", () => {
  it("may end its output with a line break, runs without a shell, and reads no standard input", () => {
    for (const program of ["printf", "echo"]) expect(readKeyFromCommand("--x", [program, key])).toBe(key);
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
