/** The unmodified code of kube-apiserver with our plugin and the configuration that we ship. */
import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { isMissing } from "../../../test/interop/tools.ts";
import { type RunningServer, startServer } from "../../../test/support/start-server.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { buildKubernetesClient, type KubernetesClient, startKubernetesClient } from "./api-server.ts";
import { makeSocketPath, startPlugin } from "./start-plugin.ts";

const shipped = join(import.meta.dirname, "../deploy/encryption-configuration.yaml");
const noGo = isMissing("go");
let program: string;
let server: RunningServer;

/** Starts the part of an API server that plugins see. */
function startApiServer(): KubernetesClient {
  const client = startKubernetesClient(program);
  onTestFinished(() => client.end());
  return client;
}

/** Writes the shipped configuration with a test's socket path. */
function configure(socket: string): string {
  const text = readFileSync(shipped, "utf8");
  expect(text).toContain("unix:///run/qsp/kms.sock");
  const path = join(makeTemporaryDirectory(), "encryption-configuration.yaml");
  // With a longer timeout, so that a busy machine fails no call.
  expect(text).toContain("timeout: 3s");
  writeFileSync(path, text.replace("/run/qsp/kms.sock", socket).replace("timeout: 3s", "timeout: 60s"));
  return path;
}

let count = 0;

/** A new key, a plugin that uses it, and a configuration for the plugin. */
async function setUp(algorithm = "X-Wing") {
  count += 1;
  const name = `cluster-${count}/etcd`;
  const kms = createClient(
    KmsService,
    createGrpcTransport({ baseUrl: server.url, idleConnectionTimeoutMs: 100 }),
  );
  const keyId = (await kms.createKey({ name, algorithm })).result?.keyId ?? "";
  const socket = makeSocketPath();
  const start = () => startPlugin({ url: server.url, key: `name/${name}`, socket });
  const plugin = await start();
  const rotate = () => kms.rotateKey({ keyId: `name/${name}` });
  return {
    keyId,
    name,
    kms,
    plugin,
    start,
    rotate,
    path: configure(socket),
    endpoint: `unix://${socket}`,
  };
}

const secret = Buffer.from('{"kind":"Secret","data":{"password":"aHVudGVyMg=="}}').toString("base64");

describe.skipIf(noGo)(
  `k8s.io/apiserver with the KMS v2 plugin${noGo ? " (needs go)" : ""}`,
  { timeout: 120_000 },
  () => {
    // The first build compiles the API server's libraries, about two minutes on one core.
    beforeAll(async () => {
      program = buildKubernetesClient(afterAll);
      server = await startServer({ dataDir: makeTemporaryDirectory(afterAll) });
    }, 600_000);
    afterAll(() => server?.stop());

    it.each(["ML-KEM-512", "ML-KEM-768", "ML-KEM-1024", "X-Wing"])(
      "encrypts secrets for etcd with %s, and reads them after a restart on either side",
      async (algorithm) => {
        const { path, plugin, start } = await setUp(algorithm);
        const first = startApiServer();
        expect(await first.do({ order: "load", path })).toEqual({ stale: false });
        expect(await first.do({ order: "health" })).toMatchObject({ healthz: "ok" });
        const { data = "" } = await first.do({ order: "store", data: secret });
        const stored = Buffer.from(data, "base64").toString("latin1");
        expect(stored).toMatch(/^k8s:enc:kms:v2:qsp:/);
        expect(stored).not.toContain("hunter2");
        expect(stored).not.toContain("aHVudGVyMg");
        await plugin.stop();
        await start();
        expect(await first.do({ order: "read", data })).toEqual({ data: secret, stale: false });
        const second = startApiServer();
        await second.do({ order: "load", path });
        expect(await second.do({ order: "read", data })).toMatchObject({ data: secret });
      },
    );

    it("after a rotation, writes with the new key, reads old data, and reports it as stale", async () => {
      const { path, rotate } = await setUp();
      const first = startApiServer();
      await first.do({ order: "load", path });
      const { data: old = "" } = await first.do({ order: "store", data: secret });
      await rotate();
      const second = startApiServer();
      await second.do({ order: "load", path });
      expect(await second.do({ order: "health" })).toMatchObject({ healthz: "ok" });
      expect(await second.do({ order: "read", data: old })).toEqual({ data: secret, stale: true });
      const { data: renewed = "" } = await second.do({ order: "store", data: secret });
      expect(await second.do({ order: "read", data: renewed })).toEqual({ data: secret, stale: false });
    });

    it("is refused if an object in etcd was changed, or names a different key", async () => {
      const [{ path }, other] = [await setUp(), await setUp()];
      const api = startApiServer();
      await api.do({ order: "load", path });
      const { data = "" } = await api.do({ order: "store", data: secret });
      for (const part of ["source", "annotation", "annotations"] as const) {
        const { data: changed = "" } = await api.do({ order: "change", part, data });
        expect(changed).not.toBe("");
        expect(await api.do({ order: "read", data: changed })).toMatchObject({
          code: "InvalidArgument",
          error: expect.stringContaining("failed to decrypt DEK"),
        });
      }
      const named = await api.do({ order: "change", part: "key_id", keyId: other.keyId, data });
      expect(await api.do({ order: "read", data: named.data ?? "" })).toMatchObject({
        code: "NotFound",
        error: expect.stringContaining("is not a version of name/cluster-"),
      });
    });

    it("calls the plugin's Status, Encrypt and Decrypt with its own client", async () => {
      const { endpoint, keyId } = await setUp("ML-KEM-1024");
      const api = startApiServer();
      expect(await api.do({ order: "status", endpoint })).toMatchObject({
        version: "v2",
        healthz: "ok",
        keyId,
      });
      const seed = randomBytes(32).toString("base64");
      const { ciphertext = "", annotations = {} } = await api.do({ order: "encrypt", endpoint, data: seed });
      const envelope = { ciphertext, annotations, keyId } as const;
      expect(await api.do({ order: "decrypt", endpoint, ...envelope })).toMatchObject({ data: seed });
    });
  },
);
