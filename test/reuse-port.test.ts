/** Servers that use one store and share a port: --reuse-port. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { readConfig } from "../src/config.ts";
import { requireReusablePort } from "../src/settings/reuse-port.ts";
import { callRest } from "./services/answers.ts";
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

/** Makes requests on connections of their own, and returns the different statuses of the answers. */
async function fetchFromAll(url: string, body?: object): Promise<Set<number>> {
  const headers = { "content-type": "application/json", connection: "close" };
  const content = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const statuses = Array.from({ length: connections }, async () => {
    const answer = await fetch(url, { headers, ...content });
    await answer.arrayBuffer();
    return answer.status;
  });
  return new Set(await Promise.all(statuses));
}

describe("two servers with --reuse-port", () => {
  it("answer on the same port with the same keys, until one stops", async () => {
    const place = await makeSqlitePlace();
    const first = await start(place, ...shared);
    // Only the first one has metrics, to distinguish them.
    const second = await start(place, ...shared, "--port", first.port, "--metrics", "off");
    expect(second.url).toBe(first.url);
    expect(await fetchFromAll(`${first.url}/metrics`)).toEqual(new Set([200, 404]));
    const { json } = await callRest(first.url, "POST /api/kms/create-key", { algorithm: "ML-DSA-44" });
    const { keyId } = json.result as { keyId: string };
    const signed = await fetchFromAll(`${first.url}/api/kms/sign`, { keyId, data: "aGVsbG8=" });
    expect(signed).toEqual(new Set([200]));
    expect(await first.stop()).toMatchObject({ code: 0 });
    expect(await fetchFromAll(`${second.url}/metrics`)).toEqual(new Set([404]));
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
