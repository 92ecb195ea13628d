/** The real server that fuzzers attack, and the checks after an attack. */
import http from "node:http";
import https from "node:https";
import { createClient, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { expect } from "vitest";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { createCryptoProvider } from "../../src/crypto/create-provider.ts";
import { createUserStore } from "../../src/identity/users.ts";
import { makeCertificates, tlsFlags, trustIn } from "../server/tls-clients.ts";
import type { AtEnd } from "../support/at-end.ts";
import { openTestStore } from "../support/open-store.ts";
import { hashCheaply, password } from "../support/passwords.ts";
import { startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { readApi } from "./fuzz-requests.ts";

/** A server under attack. */
export type FuzzedServer = Awaited<ReturnType<typeof startFuzzed>>;

/** The address to attack, and the CA of its certificate. */
type FuzzedPlace = { readonly url: string; readonly ca: string | undefined };

/** The kinds of servers: who may call them, and whether they use TLS. */
export interface FuzzedKind {
  readonly auth: "open" | "token";
  readonly isTls?: boolean;
}

/** Starts a server with all services. */
export async function startFuzzed({ auth, isTls = false }: FuzzedKind, atEnd: AtEnd) {
  const dataDir = isTls ? await makeCertificates(atEnd) : makeTemporaryDirectory(atEnd);
  const { url, exit, stop } = await startServer({
    dataDir,
    args: [
      ...["--auth", auth, "--metrics", "open", "--max-calls-per-second", "0", "--max-write-ms", "500"],
      ...(auth === "token" ? ["--issuer-url", "http://localhost"] : []),
      ...(isTls ? tlsFlags(dataDir, "gateway") : []),
    ],
  });
  atEnd(async () => void (await stop("SIGKILL")));
  let end: string | undefined;
  exit.then(
    ({ code, signal, stderr }) => {
      end = `exit code ${code}, signal ${signal}, end of its log:\n${stderr.slice(-4000)}`;
    },
    () => {},
  );
  const ca = isTls ? trustIn(dataDir) : undefined;
  const token = auth === "token" ? await logIn({ url, ca, dataDir }) : undefined;
  const api = readApi((await exchange(`${url}/openapi.json`, { ca })).body, token);
  const port = Number(new URL(url).port);
  const onBytes = (bytes: Buffer): void => {
    if (bytes.includes("HTTP/1.1 500 ")) end ??= "it answered with the status 500";
  };
  return { url, ca, stop, api, port, findEnd: (): string | undefined => end, onBytes };
}

/** Logs a user in. The token has no scopes and is not limited by them. */
async function logIn(place: { url: string; ca: string | undefined; dataDir: string }): Promise<string> {
  const username = "fuzzer";
  const provider = await createCryptoProvider("openssl");
  const store = await openTestStore(place.dataDir, provider);
  const user = { name: username, role: "user", passwordHash: hashCheaply(password) } as const;
  await createUserStore(store).add(user, new Date());
  await store.close();
  await provider.close();
  const { body } = await exchange(`${place.url}/api/auth/token`, {
    ca: place.ca,
    body: JSON.stringify({ username, password }),
    headers: { "content-type": "application/json" },
  });
  const { token } = JSON.parse(body);
  if (typeof token !== "string") throw new Error(`the server issued no token: ${body}`);
  return token;
}

interface ExchangeOptions {
  readonly ca: string | undefined;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Makes one call over a connection of its own, which ends with it. */
export function exchange(
  url: string,
  { ca, body, headers = {} }: ExchangeOptions,
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const { request } = url.startsWith("https:") ? https : http;
    const options = { method: body === undefined ? "GET" : "POST", headers, agent: false, ...(ca && { ca }) };
    const sent = request(url, options, async (response) => {
      const chunks: Buffer[] = await Array.fromAsync(response);
      resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() });
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

/** Checks that a server still works and holds nothing of the attack. Stops it to read its log. */
export async function expectUnharmed(server: FuzzedServer): Promise<void> {
  expect(server.findEnd()).toBeUndefined();
  await expectNothingHeld(server);
  await expectCalls(server);
  expect(await readMetric(server, "qsp_uncaught_errors_total")).toEqual(new Map([["", 0]]));
  const { stderr } = await server.stop();
  expect(findFaults(stderr)).toEqual([]);
}

/** Checks that a server soon holds nothing for disconnected clients. A large unread page may take a minute. */
export async function expectNothingHeld(server: FuzzedPlace): Promise<void> {
  const held = expect.poll(() => readHeld(server), { timeout: 170_000, interval: 250 });
  await held.toEqual({ calls: {}, bytes: 0, connections: 1 });
}

/** Errors in the log, and lines that did not come from the logger. */
function findFaults(log: string): string[] {
  return log
    .split("\n")
    .filter((line) => line !== "" && !/^\{"level":[234]0,/.test(line))
    .slice(0, 5);
}

async function expectCalls({ url, ca, api }: FuzzedServer): Promise<void> {
  expect(await exchange(`${url}/livez`, { ca })).toEqual({ status: 200, body: "alive\n" });
  expect((await exchange(`${url}/api/grpc/health`, { ca })).status).toBe(200);
  const options = { baseUrl: url, nodeOptions: { ...(ca && { ca }) } };
  const transports: Transport[] = [
    createGrpcTransport(options),
    createGrpcWebTransport({ ...options, httpVersion: "2" }),
    createGrpcWebTransport({ ...options, httpVersion: "1.1" }),
    createConnectTransport({ ...options, httpVersion: "2", useHttpGet: true }),
    createConnectTransport({ ...options, httpVersion: "1.1" }),
  ];
  const headers = { authorization: api.token === undefined ? "" : `Bearer ${api.token}` };
  for (const transport of transports) {
    expect(await createClient(PqcService, transport).getHealth({})).toMatchObject({ status: "success" });
    expect(
      await createClient(PqcService, transport).exchangeKeys({ algorithm: "ML-KEM-512" }, { headers }),
    ).toMatchObject({ status: "success" });
  }
}

/** The samples of a metric, by their labels. */
async function readMetric({ url, ca }: FuzzedPlace, name: string): Promise<Map<string, number>> {
  const { body } = await exchange(`${url}/metrics`, { ca });
  const lines = body
    .split("\n")
    .filter((line) => line.startsWith(name) && "{ ".includes(line.charAt(name.length)));
  return new Map(
    lines.map((line) => [line.slice(name.length, line.lastIndexOf(" ")), Number(line.split(" ").at(-1))]),
  );
}

/** What a server holds for its clients. */
async function readHeld(server: FuzzedPlace): Promise<object> {
  const calls = await readMetric(server, "qsp_calls_running");
  const sockets = await readMetric(server, "nodejs_active_resources");
  return {
    calls: Object.fromEntries([...calls].filter(([, count]) => count !== 0)),
    bytes: (await readMetric(server, "qsp_buffered_bytes")).get(""),
    // The connection that asks.
    connections: sockets.get('{type="TCPSocketWrap"}'),
  };
}
