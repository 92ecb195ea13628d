/** How much one user notices when another floods the server: signatures and log-ins of ada while mallory attacks. */
import { fork } from "node:child_process";
import { hash } from "node:crypto";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { readConfig } from "../../src/config.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { hashPassword } from "../../src/identity/passwords.ts";
import { createUserStore } from "../../src/identity/users.ts";
import { storeSettings } from "../../src/settings/store-settings.ts";
import { percentile } from "../bench/results.ts";
import { type Child, start } from "../bench/tools.ts";
import { callRest, present } from "../services/answers.ts";
import { endAfterAll } from "../support/at-end.ts";
import { openStore } from "../support/open-store.ts";
import { password } from "../support/passwords.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import type { HostileInput } from "./flood.ts";

/** Ada's address, as reported by the proxy that the server trusts. */
const adaAddress = "192.0.2.1";

/** The fields that are read from responses. */
interface Answer {
  readonly token: string;
  readonly result: { readonly keyId: string };
}

/** A server with two users, and the calls that they make. */
type Battlefield = Awaited<ReturnType<typeof startBattlefield>>;

/** Starts a server in a separate process, with users, keys and tokens. */
async function startBattlefield(dataDir: string) {
  await addUsers(dataDir, ["ada", "mallory"]);
  const slowness = measureSlowness();
  const settings = { "max-queue-ms": 1000, "max-backlog-ms": 10_000, "max-call-ms": 30_000 };
  const limits = Object.entries(settings).flatMap(([name, ms]) => [
    `--${name}`,
    String(Math.ceil(ms * slowness)),
  ]);
  const access = ["--auth", "token", "--trusted-proxies", "127.0.0.1"];
  const server = await start("app-server.ts", dataDir, ...access, ...limits);
  const ada = await logIn(server, "ada", adaAddress);
  const mallory = await logIn(server, "mallory", "198.51.100.1");
  const keyOf = async (token: string, algorithm: string): Promise<string> =>
    (await call(server, token, "/api/kms/create-key", { algorithm })).result.keyId;
  const [quick, slow] = [await keyOf(ada, "ML-DSA-65"), await keyOf(ada, "SLH-DSA-SHA2-128f")];
  const { url } = server;
  const perSecond = (count: number) => ({ url, perSecond: count / slowness });
  const batches = { url, kind: "batches", token: mallory } as const;
  const floods: Readonly<Record<string, HostileInput>> = {
    "300 health checks a second": { ...perSecond(300), kind: "health" },
    "3 wrong passwords a second, one address": { ...perSecond(3), kind: "passwords", from: "one address" },
    "3 wrong passwords a second, many addresses": {
      ...perSecond(3),
      kind: "passwords",
      from: "many addresses",
    },
    "150 batches of 1,000 ML-DSA-65": {
      ...batches,
      keyId: await keyOf(mallory, "ML-DSA-65"),
      items: 1000,
      inFlight: 150,
    },
    // A batch of 1,000 is rejected: the answer would exceed the response limit.
    "6 batches of 500 SLH-DSA-SHA2-128s": {
      ...batches,
      keyId: await keyOf(mallory, "SLH-DSA-SHA2-128s"),
      items: 500,
      inFlight: 6,
    },
  };
  const data = Buffer.alloc(32, 1).toString("base64");
  const sign = (keyId: string) => () => call(server, ada, "/api/kms/sign", { keyId, data });
  const deeds = {
    "ML-DSA-65 signatures": { everyMs: 100, run: sign(quick) },
    "SLH-DSA-SHA2-128f signatures": { everyMs: 1000, run: sign(slow) },
    "log-ins": { everyMs: 1000, run: () => logIn(server, "ada", adaAddress) },
  };
  return {
    /** Slowdown of a thread against an idle machine, because other programs share the CPU. */
    slowness,
    stop: () => server.send("stop"),
    /**
     * Ada's calls during a flood. On a slower machine everything scales: the duration, both rates and the server limits.
     */
    async measure(flood: string, forMs: number) {
      const order = JSON.stringify(present(floods[flood]));
      const hostile = fork(join(import.meta.dirname, "flood.ts"), { env: { ...process.env, ORDER: order } });
      // Start counting once the flood has begun.
      await new Promise((resolve) => setTimeout(resolve, 3000 * slowness));
      const noticed = await Promise.all(
        Object.entries(deeds).map(async ([name, { everyMs, run }]) =>
          notice(name, everyMs * slowness, forMs * slowness, run),
        ),
      );
      hostile.kill("SIGKILL");
      return noticed;
    },
  };
}

/** Makes calls at a steady rate, whether or not earlier calls have finished. */
async function notice(name: string, everyMs: number, forMs: number, run: () => Promise<unknown>) {
  const tookMs: number[] = [];
  const calls: Promise<unknown>[] = [];
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      const startedMs = performance.now();
      calls.push(
        run().then(
          () => tookMs.push(performance.now() - startedMs),
          (error: unknown) => console.error(String(error)),
        ),
      );
      if (calls.length * everyMs < forMs) return;
      clearInterval(timer);
      resolve();
    }, everyMs);
  });
  await Promise.all(calls);
  const [p50Ms, p99Ms] = [percentile(tookMs, 0.5), percentile(tookMs, 0.99)];
  return { name, made: calls.length, succeeded: tookMs.length, p50Ms, p99Ms };
}

/** Compares elapsed time with the CPU time that one thread gets. */
function measureSlowness(): number {
  const [startedMs, startedCpu] = [performance.now(), process.cpuUsage()];
  const used = (): number => {
    const { user, system } = process.cpuUsage(startedCpu);
    return (user + system) / 1000;
  };
  while (used() < 200) hash("sha256", Buffer.alloc(65_536));
  return Math.max(1, (performance.now() - startedMs) / used());
}

async function addUsers(dataDir: string, names: readonly string[]): Promise<void> {
  const provider = await createCryptoProvider("openssl");
  const settings = storeSettings(readConfig(["--data-dir", dataDir], {}));
  const store = await openStore({ ...settings, provider });
  const users = createUserStore(store);
  const passwordHash = await hashPassword(password);
  for (const name of names) await users.add({ name, role: "user", passwordHash }, new Date());
  await store.close();
  await provider.close();
}

async function logIn(server: Child, username: string, address: string): Promise<string> {
  const { token } = await call(server, "", "/api/auth/token", { username, password }, address);
  return token;
}

async function call(
  server: Child,
  token: string,
  path: string,
  body: unknown,
  address = adaAddress,
): Promise<Answer> {
  const authorization = token === "" ? {} : { authorization: `Bearer ${token}` };
  const headers = { "x-forwarded-for": address, ...authorization };
  const { status, text, json } = await callRest(server.url, `POST ${path}`, body, headers);
  if (status !== 200) throw new Error(`${path} answered ${status}: ${text.slice(0, 300)}`);
  return json as unknown as Answer;
}

/** Duration of each flood, in milliseconds. */
const measureMs = 15_000;
/** Maximum duration of a call, in milliseconds, on an otherwise idle machine with two cores. */
const limitMs = 2000;

const atEnd = endAfterAll();
let field: Battlefield;

beforeAll(async () => {
  field = await startBattlefield(join(makeTemporaryDirectory(atEnd), "data"));
  atEnd(() => field.stop());
}, 300_000);

describe("a user's signatures and log-ins", { timeout: 1_800_000 }, () => {
  it.each([
    "300 health checks a second",
    "3 wrong passwords a second, one address",
    "3 wrong passwords a second, many addresses",
    "150 batches of 1,000 ML-DSA-65",
    "6 batches of 500 SLH-DSA-SHA2-128s",
  ])("all succeed within 2 seconds while another user sends %s", async (flood) => {
    const noticed = await field.measure(flood, measureMs);
    console.info(`${flood}: ${noticed.map(describeNoticed).join("; ")}; ${availableParallelism()} cores`);
    for (const { made, succeeded, p99Ms } of noticed) {
      expect(succeeded).toBe(made);
      expect(p99Ms).toBeLessThan(limitMs * field.slowness);
    }
  });
});

function describeNoticed({
  name,
  made,
  succeeded,
  p50Ms,
  p99Ms,
}: Awaited<ReturnType<typeof notice>>): string {
  return `${name} ${succeeded}/${made}, p50 ${p50Ms.toFixed(0)} ms, p99 ${p99Ms.toFixed(0)} ms`;
}
