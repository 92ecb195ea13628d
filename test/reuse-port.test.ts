/** Servers that use one store and share a port: --reuse-port. */
import { existsSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, it, onTestFinished } from "vitest";
import { readConfig } from "../src/config.ts";
import { requireReusablePort } from "../src/settings/reuse-port.ts";
import { makeSqlitePlace, type Place } from "./support/on-both.ts";
import { runToEndHere } from "./support/run-here.ts";
import { startServer } from "./support/start-server.ts";
import { makeTemporaryDirectory } from "./support/temporary-directory.ts";

/** Number of connections. One of two servers gets none of them once in two billion runs. */
const connections = 32;

const shared = ["--reuse-port", "--services", "pqc,kms"];

async function start({ directory, settings }: Pick<Place, "directory" | "settings">, ...args: string[]) {
  const server = await startServer({ dataDir: directory, args: [...settings, ...args] });
  onTestFinished(async () => void (await server.stop("SIGKILL")));
  return { ...server, port: new URL(server.url).port };
}

/** Makes a request on its own connection. */
async function fetchOnce(url: string): Promise<{ status: number | undefined; body: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number | undefined; body: string }>();
  get(url, { agent: false }, (res) => {
    text(res).then((body) => resolve({ status: res.statusCode, body }), reject);
  }).on("error", reject);
  return promise;
}

function fetchFromAll(url: string) {
  return Promise.all(Array.from({ length: connections }, () => fetchOnce(url)));
}

function call(url: string, body: object): Promise<Response> {
  const headers = { "content-type": "application/json", connection: "close" };
  return fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
}

describe("two servers with --reuse-port", () => {
  it("answer on the same port with the same keys, until one stops", async () => {
    const place = await makeSqlitePlace();
    const first = await start(place, ...shared);
    // Only the first one has metrics, to distinguish them.
    const second = await start(place, ...shared, "--port", first.port, "--metrics", "off");
    expect(second.url).toBe(first.url);
    const metrics = await fetchFromAll(`${first.url}/metrics`);
    expect(new Set(metrics.map(({ status }) => status))).toEqual(new Set([200, 404]));
    const created = await call(`${first.url}/api/kms/create-key`, { algorithm: "ML-DSA-44" });
    const { result } = (await created.json()) as { result: { keyId: string } };
    const signed = await Promise.all(
      Array.from({ length: connections }, () =>
        call(`${first.url}/api/kms/sign`, { keyId: result.keyId, data: "aGVsbG8=" }),
      ),
    );
    expect(new Set(signed.map(({ status }) => status))).toEqual(new Set([200]));
    expect(await first.stop()).toMatchObject({ code: 0 });
    const answers = await fetchFromAll(`${second.url}/metrics`);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([404]));
  });
});

describe("--reuse-port", { timeout: 180_000 }, () => {
  const isRefused = (port: string) => ({
    code: 4,
    stdout: expect.any(String),
    stderr: expect.stringContaining(`port ${port} of 127.0.0.1 is in use`),
  });
  const makePlace = () => {
    const directory = makeTemporaryDirectory();
    return { directory, settings: ["--data-dir", directory] };
  };

  it("does not share a port with a server that lacks it", async () => {
    const place = makePlace();
    const [alone, sharing] = [await start(place), await start(place, ...shared)];
    const serve = ["serve", ...makePlace().settings];
    expect(await runToEndHere([...serve, ...shared, "--port", alone.port])).toEqual(isRefused(alone.port));
    expect(await runToEndHere([...serve, "--port", sharing.port])).toEqual(isRefused(sharing.port));
  });

  it.each([
    [["--reuse-port"], "--services pqc,kms,iot,"],
    [["--reuse-port", "--services", "kms,vpn,iot"], "--services kms,iot\n"],
  ])("rejects the vpn service, whose sessions belong to one server: %j", async (args, advice) => {
    const dataDir = join(makeTemporaryDirectory(), "data");
    expect(await runToEndHere(["serve", "--port", "0", "--data-dir", dataDir, ...args])).toEqual({
      code: 2,
      stdout: "",
      stderr: expect.stringContaining(advice),
    });
    expect(existsSync(dataDir)).toBe(false);
  });

  it("is rejected where the system cannot share a port", () => {
    const config = readConfig(["--reuse-port"], {});
    const kms = [{ name: "kms" }];
    expect(() => requireReusablePort(config, kms, "darwin")).toThrow(/^--reuse-port: .*on this system/);
    expect(() => requireReusablePort(readConfig([], {}), kms, "darwin")).not.toThrow();
    expect(() => requireReusablePort(config, kms, "linux")).not.toThrow();
  });

  it("is suggested for the former option --workers", async () => {
    expect(await runToEndHere(["serve", "--workers", "2"])).toMatchObject({
      code: 2,
      stderr:
        "qsp: --workers is not an option of this verb; did you mean --reuse-port? --help lists the options\n",
    });
  });
});
