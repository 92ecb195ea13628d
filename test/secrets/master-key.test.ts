import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { type MasterKeySource, masterKeyIn, openKeyring } from "../../src/secrets/master-key.ts";
import { openTestStore } from "../support/open-store.ts";
import { runToEndHere } from "../support/run-here.ts";
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

describe("starting the program", { timeout: 120_000 }, () => {
  it("fails with one sentence and exit code 2 for a wrong master key", async () => {
    const dataDir = makeTemporaryDirectory();
    await makeStore(dataDir);
    writeKey(join(dataDir, "master.key"), digits);
    expect(await runToEndHere(["serve", "--port", "0", "--data-dir", dataDir])).toMatchObject(
      refused(/master key/),
    );
  });

  it("fails with one sentence and exit code 2 for a missing master key", async () => {
    const dataDir = makeTemporaryDirectory();
    await makeStore(dataDir);
    rmSync(join(dataDir, "master.key"));
    expect(await runToEndHere(["serve", "--port", "0", "--data-dir", dataDir])).toMatchObject(
      refused(/is missing/),
    );
  });

  it("fails with one sentence and exit code 2 for a world-readable master key", async () => {
    const dataDir = makeTemporaryDirectory();
    await makeStore(dataDir);
    chmodSync(join(dataDir, "master.key"), 0o644);
    expect(await runToEndHere(["serve", "--port", "0", "--data-dir", dataDir])).toMatchObject(
      refused(/0600/),
    );
  });
});

/** Reads the master key as startup with a new store does. */
function loadMasterKey(source: MasterKeySource): Uint8Array {
  return openKeyring(source, true).current;
}

/** Leaves a store with a sealed secret in it. */
async function makeStore(dataDir: string): Promise<void> {
  const provider = await createCryptoProvider("openssl");
  await (await openTestStore(dataDir, provider)).close();
  await provider.close();
}

function writeKey(path: string, content: string): string {
  writeFileSync(path, content, { mode: 0o600 });
  return path;
}

function refused(sentence: RegExp) {
  const oneLine = new RegExp(`^qsp: [^\\n]*${sentence.source}[^\\n]*\\n$`);
  return { code: 2, stdout: "", stderr: expect.stringMatching(oneLine) };
}
