/** The unmodified code of kube-apiserver with our plugin and the configuration that we ship. */
import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { isMissing } from "../../../test/interop/tools.ts";
import { present } from "../../../test/services/answers.ts";
import { base64, flipBit } from "../../../test/support/bytes.ts";
import { startLineClient } from "../../../test/support/line-client.ts";
import { type RunningServer, startServer } from "../../../test/support/start-server.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { kemAnnotation } from "../envelope.ts";
import { makeSocketPath, startPlugin } from "./start-plugin.ts";

const shipped = readFileSync(join(import.meta.dirname, "../deploy/encryption-configuration.yaml"), "utf8");
const noGo = isMissing("go");
const program = join(makeTemporaryDirectory(afterAll), "apiserver");
let server: RunningServer;

/** A command for the API server; main.go describes the fields. Bytes are base64. */
interface Order {
  readonly order: "load" | "health" | "store" | "read";
  readonly path?: string;
  readonly data?: string;
}

/** A command's outcome. */
interface Outcome {
  readonly error?: string;
  readonly data?: string;
  /** Whether the API server would rewrite the object with the current key. */
  readonly stale: boolean;
  readonly healthz?: string;
}

/** Starts the part of an API server that plugins see. Like an API server, it caches decrypted keys until it ends. */
async function startApiServer(path: string) {
  const { ask, end } = startLineClient<Order, Outcome>(program);
  onTestFinished(end);
  expect(await ask({ order: "load", path })).toEqual({ stale: false });
  expect(await ask({ order: "health" })).toMatchObject({ healthz: "ok" });
  return {
    store: async (data: string) => (await ask({ order: "store", data })).data ?? "",
    read: (data: string) => ask({ order: "read", data }),
  };
}

/** Writes the shipped configuration with a test's socket path. */
function configure(socket: string): string {
  const path = join(makeTemporaryDirectory(), "encryption-configuration.yaml");
  // With a longer timeout, so that a busy machine fails no call.
  const text = shipped.replace("/run/qsp/kms.sock", socket).replace("timeout: 3s", "timeout: 60s");
  expect(text).toContain(`unix://${socket}`);
  writeFileSync(path, text);
  return path;
}

/** A new key, a plugin that uses it, and a configuration for the plugin. */
async function setUp(algorithm = "X-Wing") {
  const name = `${algorithm.toLowerCase()}/${randomUUID()}`;
  const transport = createGrpcTransport({ baseUrl: server.url, idleConnectionTimeoutMs: 100 });
  const kms = createClient(KmsService, transport);
  const { keyId } = present((await kms.createKey({ name, algorithm })).result);
  const socket = makeSocketPath();
  const start = () => startPlugin({ url: server.url, key: `name/${name}`, socket });
  const rotate = () => kms.rotateKey({ keyId });
  return { keyId, plugin: await start(), start, rotate, path: configure(socket) };
}

const secret = Buffer.from('{"kind":"Secret","data":{"password":"aHVudGVyMg=="}}').toString("base64");

describe.skipIf(noGo)(
  `k8s.io/apiserver with the KMS v2 plugin${noGo ? " (needs go)" : ""}`,
  { timeout: 120_000 },
  () => {
    // The first build compiles the API server's libraries, about two minutes on one core.
    beforeAll(async () => {
      const cwd = join(import.meta.dirname, "go-kubernetes");
      const { status, stderr } = spawnSync("go", ["build", "-o", program, "."], { cwd, encoding: "utf8" });
      if (status !== 0) throw new Error(`go build failed: ${stderr}`);
      server = await startServer({ dataDir: makeTemporaryDirectory(afterAll) });
    }, 600_000);
    afterAll(() => server?.stop());

    it.each(["ML-KEM-512", "ML-KEM-768", "ML-KEM-1024", "X-Wing"])(
      "encrypts secrets for etcd with %s, and reads them after a restart on either side",
      async (algorithm) => {
        const { path, plugin, start } = await setUp(algorithm);
        const first = await startApiServer(path);
        const data = await first.store(secret);
        const stored = Buffer.from(data, "base64").toString("latin1");
        expect(stored).toMatch(/^k8s:enc:kms:v2:qsp:/);
        expect(stored).not.toContain("hunter2");
        expect(stored).not.toContain("aHVudGVyMg");
        await plugin.stop();
        await start();
        expect(await first.read(data)).toEqual({ data: secret, stale: false });
        const second = await startApiServer(path);
        expect(await second.read(data)).toMatchObject({ data: secret });
      },
    );

    it("after a rotation, writes with the new key, reads old data, and reports it as stale", async () => {
      const { path, rotate } = await setUp();
      const old = await (await startApiServer(path)).store(secret);
      await rotate();
      const second = await startApiServer(path);
      expect(await second.read(old)).toEqual({ data: secret, stale: true });
      expect(await second.read(await second.store(secret))).toEqual({ data: secret, stale: false });
    });

    it("is refused if an object in etcd was changed, or names a different key", async () => {
      const [{ path, keyId }, other] = [await setUp(), await setUp()];
      const api = await startApiServer(path);
      const stored = Buffer.from(await api.store(secret), "base64");
      const changed = flipBit(stored, stored.indexOf(kemAnnotation) + 100);
      expect((await api.read(base64(changed))).error).toMatch(/failed to decrypt DEK/);
      const named = Buffer.from(stored.toString("latin1").replace(keyId, other.keyId), "latin1");
      expect((await api.read(base64(named))).error).toMatch(/is not a version of name\/x-wing/);
    });
  },
);
