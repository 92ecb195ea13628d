import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { type MasterKeySource, masterKeyIn, openKeyring } from "../../src/secrets/master-key.ts";
import { storageError } from "../support/storage-error.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";

const digits = `${"0f".repeat(32)}\n`;

describe("the master key", () => {
  it("is created on the first start: 64 hexadecimal digits, readable only by its owner", () => {
    const dataDir = join(makeTemporaryDirectory(), "new", "directory");
    const key = loadMasterKey(masterKeyIn(dataDir));
    const path = join(dataDir, "master.key");
    expect(readFileSync(path, "utf8")).toBe(`${Buffer.from(key).toString("hex")}\n`);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(dataDir).mode & 0o777).toBe(0o700);
  });

  it("differs between data directories, and stays the same on the next start", () => {
    const [one, other] = [makeTemporaryDirectory(), makeTemporaryDirectory()];
    expect(loadMasterKey(masterKeyIn(one))).not.toEqual(loadMasterKey(masterKeyIn(other)));
    expect(loadMasterKey(masterKeyIn(one))).toEqual(loadMasterKey(masterKeyIn(one)));
  });

  it("is read from the operator's file, if specified", () => {
    const dataDir = makeTemporaryDirectory();
    const path = writeKey(join(dataDir, "mine.key"), digits);
    expect(Buffer.from(loadMasterKey({ kind: "file", path })).toString("hex")).toBe("0f".repeat(32));
    expect(existsSync(join(dataDir, "master.key"))).toBe(false);
  });

  it.each([
    ["empty", ""],
    ["63 digits", "0".repeat(63)],
    ["65 digits", "0".repeat(65)],
    ["no digits", "x".repeat(64)],
    ["32 bytes", "\u0001".repeat(32)],
  ])("is rejected in one sentence if the file is %s", (_what, content) => {
    const dataDir = makeTemporaryDirectory();
    writeKey(join(dataDir, "master.key"), content);
    expect(() => loadMasterKey(masterKeyIn(dataDir))).toThrow(
      storageError(/master\.key is not a master key/),
    );
  });

  it.each([0o644, 0o640, 0o604, 0o660])("is rejected in one sentence if its mode is %o", (mode) => {
    const dataDir = makeTemporaryDirectory();
    chmodSync(writeKey(join(dataDir, "master.key"), digits), mode);
    expect(() => loadMasterKey(masterKeyIn(dataDir))).toThrow(storageError(/set its mode to 0600/));
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

  it("is rejected in one sentence if the file is missing although a store exists", async () => {
    const dataDir = makeTemporaryDirectory();
    expect(() => openKeyring(masterKeyIn(dataDir), false)).toThrow(storageError(/master key .* is missing/));
    expect(existsSync(join(dataDir, "master.key"))).toBe(false);
  });

  it("is rejected in one sentence if it is a directory", () => {
    const dataDir = makeTemporaryDirectory();
    mkdirSync(join(dataDir, "master.key"));
    expect(() => loadMasterKey(masterKeyIn(dataDir))).toThrow(storageError(/cannot be read/));
  });
});

/** Reads the master key as startup with a new store does. */
function loadMasterKey(source: MasterKeySource): Uint8Array {
  return openKeyring(source, true).current;
}

function writeKey(path: string, content: string): string {
  writeFileSync(path, content, { mode: 0o600 });
  return path;
}
