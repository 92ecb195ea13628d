/**
 * python-tuf's ngclient, unmodified: it starts from our first root, updates, follows a rotation of the root, and
 * refuses what a hostile mirror serves.
 */
import { hash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { listen } from "../../../test/cli/qsp.ts";
import { findPython } from "../../../test/interop/python.ts";
import { run } from "../../../test/interop/tools.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { encodeCanonical, type JsonObject } from "../canonical-json.ts";
import { toTufKey } from "../keys.ts";
import {
  createSigners,
  openRepository,
  proposeRoot,
  publishRoot,
  repository,
  startTufServer,
} from "./tuf-server.ts";

const python = findPython("tuf.ngclient, cryptography.hazmat.primitives.asymmetric.mldsa");
const title = python === undefined ? "needs tuf 7.0.1 and cryptography 48 for Python" : "works";
const timestampPath = "metadata/timestamp.json";

async function runScript(name: string, ...args: string[]) {
  const { stdout } = await run(python ?? "", [join(import.meta.dirname, "python", name), ...args]);
  return JSON.parse(stdout);
}

/** A server with the repository, and a mirror of it that can serve other files. */
async function startMirror() {
  const { url, tuf, defi } = await startTufServer();
  const { signers } = await openRepository({ tuf, defi });
  /** Files to serve instead of the server's, by path. */
  const files = new Map<string, string>();
  const load = (path: string) => fetch(`${url}/tuf/${repository}/${path}`);
  const mirror = createServer(async (request, response) => {
    const path = (request.url ?? "").slice(1);
    const answer = await load(path);
    response.writeHead(answer.status).end(files.get(path) ?? (await answer.bytes()));
  });
  const mirrorUrl = `http://127.0.0.1:${await listen(mirror)}`;
  const read = async (path: string) => (await load(path)).text();
  return {
    ...{ tuf, defi, signers, files, read },
    /** Publishes a file. */
    async publish(path: string, body: string, query = ""): Promise<void> {
      const target = `${url}/api/tuf/repositories/${repository}/targets/${path}${query}`;
      const response = await fetch(target, { method: "PUT", body });
      if (!response.ok) throw new Error(await response.text());
      await tuf.publish({ repository });
    },
    /** Returns a device's update, which returns what the client printed. */
    async createDevice() {
      const directory = makeTemporaryDirectory();
      let first = join(directory, "root.json");
      writeFileSync(first, await read("metadata/1.root.json"));
      return (...paths: string[]) => {
        const updating = runScript("update.py", mirrorUrl, directory, first, ...paths);
        first = "";
        return updating;
      };
    },
  };
}

const sha256Of = (content: string) => ({ sha256: hash("sha256", content) });

describe.skipIf(python === undefined)(`python-tuf's ngclient ${title}`, () => {
  it("updates firmware, also of a delegated type, and follows a rotation of every key", async () => {
    const mirror = await startMirror();
    const { tuf } = mirror;
    const update = await mirror.createDevice();
    const path = "esp32/app.bin";
    expect(await update(path)).toMatchObject({
      versions: { root: 1, timestamp: 1 },
      targets: { [path]: null },
    });
    await mirror.publish(path, "version 1", "?version=1.0&deviceTypes=esp32");
    const custom = { version: "1.0", deviceTypes: ["esp32"] };
    expect(await update(path)).toEqual({
      versions: { root: 1, timestamp: 2, snapshot: 2, targets: 2 },
      targets: { [path]: { ...sha256Of("version 1"), custom } },
    });

    await tuf.setDelegation({ repository, role: "esp32" });
    await mirror.publish(path, "version 2");
    expect(await update(path)).toMatchObject({
      versions: { esp32: 1 },
      targets: { [path]: sha256Of("version 2") },
    });

    // Two of three signers vote for three others, and for new keys of all roles.
    const next = await createSigners(mirror, 3, 2);
    const newKeys = ["targets", "snapshot", "timestamp"];
    const proposal = await proposeRoot(mirror, { walletId: next.walletId, newKeys });
    await publishRoot(mirror, proposal, mirror.signers.slice(0, 2), next.signers.slice(1));
    await tuf.setDelegation({ repository, role: "esp32" });
    await mirror.publish(path, "version 3");
    expect(await update(path)).toMatchObject({
      versions: { root: 2, timestamp: 5, snapshot: 5, targets: 5, esp32: 2 },
      targets: { [path]: sha256Of("version 3") },
    });
    // A new device follows from the first root.
    const updateOther = await mirror.createDevice();
    expect(await updateOther(path)).toMatchObject({ versions: { root: 2, esp32: 2 } });
    // The new signers alone decide about the next root.
    await publishRoot(mirror, await proposeRoot(mirror), next.signers.slice(0, 2));
    expect(await update(path)).toMatchObject({ versions: { root: 3 } });
  });

  it("refuses a rollback, a mix of versions, and changed files", async () => {
    const { files, read, publish, createDevice } = await startMirror();
    const [snapshotPath, targetsPath] = ["metadata/3.snapshot.json", "metadata/3.targets.json"];
    await publish("a.bin", "old");
    const oldTimestamp = await read(timestampPath);
    const oldTargets = await read("metadata/2.targets.json");
    const oldSnapshot = await read("metadata/2.snapshot.json");
    await publish("a.bin", "new");
    const update = await createDevice();
    const current = { targets: { "a.bin": sha256Of("new") } };
    expect(await update("a.bin")).toMatchObject({ ...current, versions: { timestamp: 3 } });

    files.set(timestampPath, oldTimestamp);
    // A client keeps what it trusts when a timestamp is older than its own, and says so.
    const kept = { error: "BadVersionNumberError", versions: { timestamp: 3 } };
    expect(await update()).toMatchObject(kept);
    files.clear();

    const updateOther = await createDevice();
    for (const [path, content] of [
      [snapshotPath, oldSnapshot],
      [targetsPath, oldTargets],
      [`targets/${sha256Of("new").sha256}.a.bin`, "odd"],
    ] as const) {
      files.clear();
      files.set(path, content);
      expect((await updateOther("a.bin")).error).toMatch(
        /^(LengthOrHashMismatchError|RepositoryError|BadVersionNumberError)$/,
      );
    }
    files.clear();
    expect(await updateOther("a.bin")).toMatchObject(current);
  });

  it("refuses a freeze: metadata that have expired", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() - 2 * 24 * 3600 * 1000 });
    onTestFinished(() => void vi.useRealTimers());
    const { tuf, files, read, createDevice } = await startMirror();
    files.set(timestampPath, await read(timestampPath));
    vi.useRealTimers();
    const update = await createDevice();
    expect(await update()).toMatchObject({
      error: "ExpiredMetadataError",
      message: expect.stringContaining("timestamp"),
    });
    // The server has renewed it meanwhile, or does so when it publishes.
    files.clear();
    await tuf.publish({ repository });
    expect(await update()).not.toHaveProperty("error");
  });

  it("refuses a root with too few signatures of the current or of the new root", async () => {
    const mirror = await startMirror();
    const next = await createSigners(mirror, 2, 2);
    const proposal = await proposeRoot(mirror, { walletId: next.walletId });
    await publishRoot(mirror, proposal, mirror.signers.slice(0, 2), next.signers);
    const root: { signatures: object[] } = JSON.parse(await mirror.read("metadata/2.root.json"));
    expect(root.signatures).toHaveLength(4);
    for (const left of root.signatures) {
      const signatures = root.signatures.filter((signature) => signature !== left);
      mirror.files.set("metadata/2.root.json", JSON.stringify({ ...root, signatures }));
      const update = await mirror.createDevice();
      expect(await update()).toMatchObject({ error: "UnsignedMetadataError", versions: { root: 1 } });
    }
  });

  it("computes the same canonical JSON and key IDs as we do", async () => {
    const values: JsonObject[] = [
      { b: 1, a: [true, false, -5, "text"], Z: {}, a_: "é" },
      { text: 'quotes " and \\ and\nlines\ttabs \u0001 \u2028', empty: [], deep: { list: [[1], { x: "" }] } },
    ];
    const { key, tufKeyId } = toTufKey({ algorithm: "ML-DSA-65", publicKey: new Uint8Array(1952).fill(7) });
    expect(await runScript("canonical.py", JSON.stringify(values), JSON.stringify(key))).toEqual({
      encoded: values.map((value) => Buffer.from(encodeCanonical(value)).toString("hex")),
      keyId: tufKeyId,
      isEqual: true,
    });
  });
});
