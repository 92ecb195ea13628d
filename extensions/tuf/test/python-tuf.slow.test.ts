/**
 * python-tuf's ngclient, unmodified: it starts from our first root, updates, follows a rotation of the root, and
 * refuses what a hostile mirror serves.
 */
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { findPython } from "../../../test/interop/python.ts";
import { run } from "../../../test/interop/tools.ts";
import { present } from "../../../test/services/answers.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { encodeCanonical, type JsonObject } from "../canonical-json.ts";
import { toTufKey } from "../keys.ts";
import { createSigners, openRepository, publishRoot, startTufServer, type TufServer } from "./tuf-server.ts";

const python = findPython("tuf.ngclient, cryptography.hazmat.primitives.asymmetric.mldsa");
const title = python === undefined ? "needs tuf 7.0.1 and cryptography 48 for Python" : "works";

/** A mirror of a server's repository that can serve other files. */
interface Mirror {
  readonly url: string;
  /** Files to serve instead of the server's, by path; undefined for a file that does not exist. */
  readonly files: Map<string, string | undefined>;
  /** Reads a file of the server. */
  read(path: string): Promise<string>;
}

async function startMirror({ url }: TufServer): Promise<Mirror> {
  const files = new Map<string, string | undefined>();
  const load = (path: string) => fetch(`${url}/tuf/firmware/${path}`);
  const server = createServer(async (request, response) => {
    const path = (request.url ?? "").slice(1);
    if (files.has(path))
      return void response.writeHead(files.get(path) === undefined ? 404 : 200).end(files.get(path));
    const { status, body } = await load(path).then(async (answer) => ({
      status: answer.status,
      body: Buffer.from(await answer.arrayBuffer()),
    }));
    response.writeHead(status).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, files, read: async (path) => (await load(path)).text() };
}

/** A device with a client's state. */
async function createDevice(mirror: Mirror) {
  const directory = makeTemporaryDirectory();
  const root = join(directory, "root.json");
  writeFileSync(root, await mirror.read("metadata/1.root.json"));
  let first = root;
  /** Updates, and returns what the client printed. */
  const update = async (...paths: string[]) => {
    const script = join(import.meta.dirname, "python/update.py");
    const { stdout } = await run(python ?? "", [script, mirror.url, directory, first, ...paths]);
    first = "";
    return JSON.parse(stdout);
  };
  return { update };
}

async function upload({ url }: TufServer, path: string, content: string, query = ""): Promise<void> {
  const response = await fetch(`${url}/api/tuf/repositories/firmware/targets/${path}${query}`, {
    method: "PUT",
    body: content,
  });
  if (!response.ok) throw new Error(await response.text());
}

function hashOf(content: string): string {
  return createHash("sha256").update(content).digest("hex");
}

describe.skipIf(python === undefined)(`python-tuf's ngclient ${title}`, () => {
  it("updates firmware, also of a delegated type, and follows a rotation of every key", async () => {
    const server = await startTufServer();
    const { signers } = await openRepository(server);
    const mirror = await startMirror(server);
    const device = await createDevice(mirror);
    const path = "esp32/app.bin";
    expect(await device.update(path)).toMatchObject({
      versions: { root: 1, timestamp: 1 },
      targets: { [path]: null },
    });
    await upload(server, path, "version 1", "?version=1.0&deviceTypes=esp32");
    await server.tuf.publish({ repository: "firmware" });
    expect(await device.update(path)).toEqual({
      versions: { root: 1, timestamp: 2, snapshot: 2, targets: 2 },
      targets: {
        [path]: { sha256: hashOf("version 1"), custom: { version: "1.0", deviceTypes: ["esp32"] } },
      },
    });

    await server.tuf.setDelegation({ repository: "firmware", role: "esp32" });
    await upload(server, path, "version 2");
    await server.tuf.publish({ repository: "firmware" });
    expect(await device.update(path)).toMatchObject({
      versions: { esp32: 1 },
      targets: { [path]: { sha256: hashOf("version 2") } },
    });

    // Two of three signers vote for three others, and for new keys of all roles.
    const next = await createSigners(server, 3, 2);
    const { proposal } = await server.tuf.proposeRoot({
      repository: "firmware",
      walletId: next.walletId,
      newKeys: ["targets", "snapshot", "timestamp"],
    });
    await publishRoot(server, present(proposal), signers.slice(0, 2), next.signers.slice(1));
    await server.tuf.setDelegation({ repository: "firmware", role: "esp32" });
    await upload(server, path, "version 3");
    await server.tuf.publish({ repository: "firmware" });
    expect(await device.update(path)).toMatchObject({
      versions: { root: 2, timestamp: 5, snapshot: 5, targets: 5, esp32: 2 },
      targets: { [path]: { sha256: hashOf("version 3") } },
    });
    // A new device follows from the first root.
    expect(await (await createDevice(mirror)).update(path)).toMatchObject({
      versions: { root: 2, esp32: 2 },
    });
    // The new signers alone decide about the next root.
    const { proposal: third } = await server.tuf.proposeRoot({ repository: "firmware" });
    await publishRoot(server, present(third), next.signers.slice(0, 2));
    expect(await device.update(path)).toMatchObject({ versions: { root: 3 } });
  });

  it("refuses a rollback, a mix of versions, and changed files", async () => {
    const server = await startTufServer();
    await openRepository(server);
    const mirror = await startMirror(server);
    await upload(server, "a.bin", "old");
    await server.tuf.publish({ repository: "firmware" });
    const old = await mirror.read("metadata/timestamp.json");
    const oldTargets = await mirror.read("metadata/2.targets.json");
    const oldSnapshot = await mirror.read("metadata/2.snapshot.json");
    await upload(server, "a.bin", "new");
    await server.tuf.publish({ repository: "firmware" });
    const device = await createDevice(mirror);
    expect(await device.update("a.bin")).toMatchObject({
      versions: { timestamp: 3 },
      targets: { "a.bin": { sha256: hashOf("new") } },
    });

    const timestamp = await mirror.read("metadata/timestamp.json");
    mirror.files.set("metadata/timestamp.json", old);
    // A client keeps what it trusts when a timestamp is older than its own, and says so.
    expect(await device.update()).toMatchObject({
      error: "BadVersionNumberError",
      versions: { timestamp: 3 },
    });
    mirror.files.set("metadata/timestamp.json", timestamp);

    const newcomer = await createDevice(mirror);
    mirror.files.set("metadata/3.snapshot.json", oldSnapshot);
    expect(await newcomer.update()).toMatchObject({
      error: expect.stringMatching(/^(LengthOrHashMismatchError|RepositoryError|BadVersionNumberError)$/),
    });
    mirror.files.delete("metadata/3.snapshot.json");
    mirror.files.set("metadata/3.targets.json", oldTargets);
    expect(await newcomer.update()).toMatchObject({
      error: expect.stringMatching(/^(LengthOrHashMismatchError|RepositoryError|BadVersionNumberError)$/),
    });
    mirror.files.delete("metadata/3.targets.json");
    mirror.files.set(`targets/${hashOf("new")}.a.bin`, "odd");
    expect(await newcomer.update("a.bin")).toMatchObject({ error: "LengthOrHashMismatchError" });
    mirror.files.clear();
    expect(await newcomer.update("a.bin")).toMatchObject({ targets: { "a.bin": { sha256: hashOf("new") } } });
  });

  it("refuses a freeze: metadata that have expired", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() - 2 * 24 * 3600 * 1000 });
    onTestFinished(() => void vi.useRealTimers());
    const server = await startTufServer();
    await openRepository(server);
    const mirror = await startMirror(server);
    mirror.files.set("metadata/timestamp.json", await mirror.read("metadata/timestamp.json"));
    vi.useRealTimers();
    const device = await createDevice(mirror);
    expect(await device.update()).toMatchObject({
      error: "ExpiredMetadataError",
      message: expect.stringContaining("timestamp"),
    });
    // The server has renewed it meanwhile, or does so when it publishes.
    mirror.files.clear();
    await server.tuf.publish({ repository: "firmware" });
    expect(await device.update()).not.toHaveProperty("error");
  });

  it("refuses a root with too few signatures of the current or of the new root", async () => {
    const server = await startTufServer();
    const { signers } = await openRepository(server);
    const mirror = await startMirror(server);
    const next = await createSigners(server, 2, 2);
    const { proposal } = await server.tuf.proposeRoot({ repository: "firmware", walletId: next.walletId });
    await publishRoot(server, present(proposal), signers.slice(0, 2), next.signers);
    const root: { signatures: { keyid: string }[]; signed: { keys: Record<string, unknown> } } = JSON.parse(
      await mirror.read("metadata/2.root.json"),
    );
    expect(root.signatures).toHaveLength(4);
    for (const left of root.signatures) {
      const signatures = root.signatures.filter((signature) => signature !== left);
      mirror.files.set("metadata/2.root.json", JSON.stringify({ ...root, signatures }));
      const device = await createDevice(mirror);
      expect(await device.update()).toMatchObject({ error: "UnsignedMetadataError", versions: { root: 1 } });
    }
  });

  it("computes the same canonical JSON and key IDs as we do", async () => {
    const values: JsonObject[] = [
      { b: 1, a: [true, false, -5, "text"], Z: {}, a_: "é" },
      { text: 'quotes " and \\ and\nlines\ttabs \u0001 \u2028', empty: [], deep: { list: [[1], { x: "" }] } },
    ];
    const { key, tufKeyId } = toTufKey({ algorithm: "ML-DSA-65", publicKey: new Uint8Array(1952).fill(7) });
    const script = join(import.meta.dirname, "python/canonical.py");
    const { stdout } = await run(python ?? "", [script, JSON.stringify(values), JSON.stringify(key)]);
    expect(JSON.parse(stdout)).toEqual({
      encoded: values.map((value) => Buffer.from(encodeCanonical(value)).toString("hex")),
      keyId: tufKeyId,
      isEqual: true,
    });
  });
});
