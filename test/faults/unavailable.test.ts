import { closeSync, existsSync, openSync, renameSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, it } from "vitest";
import { Health, HealthCheckResponse_ServingStatus as Status } from "#gen/grpc/health/v1/health_pb.ts";
import { listWriting, servicePackages } from "../../src/services/registry.ts";
import { refusal } from "../support/refusal.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { loadPackages } from "../support/whole-program.ts";
import { type KmsServer, startKmsServer } from "./kms-server.ts";

const reason = "its file was moved or removed, or cannot be opened";
const unavailable = { code: "Unavailable", reason: "STORE_UNAVAILABLE" };

async function get(server: KmsServer, path: string): Promise<{ status: number; text: string }> {
  const response = await fetch(server.url + path);
  return { status: response.status, text: await response.text() };
}

/** Returns the services with the status NOT_SERVING. */
async function listNotServing(server: KmsServer): Promise<string[]> {
  const health = createClient(Health, createGrpcTransport({ baseUrl: server.url }));
  const { statuses } = await health.list({});
  return Object.keys(statuses).filter((name) => statuses[name]?.status === Status.NOT_SERVING);
}

async function readWritable(server: KmsServer): Promise<string | undefined> {
  return /^qsp_store_writable (\d)$/m.exec((await get(server, "/metrics")).text)?.[1];
}

describe("a server whose store was moved away", () => {
  it("reports why it is not ready, and recovers on its own when the store is back", async () => {
    const dataDir = makeTemporaryDirectory();
    const path = join(dataDir, "qsp.db");
    const server = await startKmsServer({ dataDir });
    const { keyId } = (await server.kms.createKey({ algorithm: "ML-DSA-44" })).result ?? { keyId: "" };
    expect(await get(server, "/readyz")).toEqual({ status: 200, text: "ready\n" });
    expect(await readWritable(server)).toBe("1");

    renameSync(path, `${path}.away`);
    expect(await refusal(server.kms.createKey({}))).toEqual(unavailable);
    // A thread opens the file again.
    expect(await refusal(server.kms.verifyAuditLog({}))).toEqual(unavailable);
    const notReady = { status: 503, text: `the store cannot be written: ${reason}\n` };
    await expect.poll(() => get(server, "/readyz")).toEqual(notReady);
    expect(await get(server, "/livez")).toMatchObject({ status: 200 });
    // A proxy checks the server as a whole: reads, log-ins and computations still work.
    const ofExtensions = listWriting(await loadPackages()).filter(
      (name) => !listWriting(servicePackages).includes(name),
    );
    const ofCore = ["kms.KmsService", "iot.IotService", "vpn.VpnService", "dapp.DappService"];
    ofCore.push("wallet.WalletService", "defi.DefiService", "blockchain.BlockchainService", "nft.NftService");
    expect(new Set(await listNotServing(server))).toEqual(new Set([...ofCore, ...ofExtensions]));
    expect(await server.kms.getKey({ keyId })).toMatchObject({ status: "success" });
    for (const service of ["kms", "iot", "vpn", "dapp", "wallet", "defi", "blockchain", "nft"])
      expect((await get(server, `/api/${service}/health`)).text).toContain('"serviceStatus":"DOWN"');
    expect((await get(server, "/api/health")).text).toContain('"serviceStatus":"UP"');
    expect(await readWritable(server)).toBe("0");

    renameSync(`${path}.away`, path);
    await expect.poll(() => get(server, "/readyz")).toEqual({ status: 200, text: "ready\n" });
    expect(await listNotServing(server)).toEqual([]);
    expect(await readWritable(server)).toBe("1");
    expect(await server.kms.getHealth({})).toMatchObject({ serviceStatus: "UP", keyCount: 1 });
    const { stderr } = await server.stop();
    const lines = stderr.split("\n").filter((line) => /the store can(not)? be written/.test(line));
    expect(lines).toEqual([
      expect.stringContaining(`the store cannot be written: ${reason}`),
      expect.stringContaining("the store can be written again"),
    ]);
  });
});

const hook = pathToFileURL(join(import.meta.dirname, "end-threads.mjs")).href;
const env = { NODE_OPTIONS: `--import=${hook}` };

it("a server whose SQLite threads keep ending stops with exit code 4 and one line with the reason", async () => {
  const server = await startKmsServer({ dataDir: makeTemporaryDirectory(), env });
  const { keyId } = (await server.kms.createKey({ algorithm: "ML-DSA-44" })).result ?? { keyId: "" };
  server.process.kill("SIGUSR2");
  const sign = () => refusal(server.kms.sign({ keyId, data: Buffer.from("message") })).catch(() => undefined);
  expect(await sign()).toEqual(unavailable);
  // Its polls of the store fail in the same way, so it stops even without calls.
  const { code, stderr } = await server.exit;
  const fatal = stderr.split("\n").filter((line) => line.includes('"level":60'));
  expect(fatal).toEqual([expect.stringContaining("the store has become unusable; the server stops")]);
  expect(code).toBe(4);
});

it.skipIf(!existsSync("/dev/full"))("a server keeps running when the disk of its log is full", async () => {
  const full = openSync("/dev/full", "w");
  const server = await startKmsServer({
    dataDir: makeTemporaryDirectory(),
    args: ["--log-level", "debug"],
    how: { stdio: ["ignore", "pipe", full] },
  });
  closeSync(full);
  // Each call writes a line.
  for (let calls = 0; calls < 3; calls += 1)
    expect((await fetch(`${server.url}/api/hello`)).status).toBe(200);
  expect(await server.stop()).toMatchObject({ code: 0, signal: null });
});
