/**
 * A third-party service behind a real Envoy that asks our server about every request (envoy/protect.yaml).
 */
import { once } from "node:events";
import http from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { decodeJwt } from "jose";
import { beforeAll, expect, it, onTestFinished } from "vitest";
import { readConfig } from "../../../src/config.ts";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import { createClientStore, type NewClient } from "../../../src/identity/clients.ts";
import { issueToClient, type Office, openOffice } from "../../../test/access/access-server.ts";
import {
  connectHttp2,
  describeEdge,
  eventually,
  startBackend,
  startTestEdge,
  type TestEdge,
} from "../../../test/envoy/edge-tools.ts";
import { request as requestHttp2 } from "../../../test/server/raw.ts";
import { type AtEnd, endAfterAll } from "../../../test/support/at-end.ts";
import { describeClient } from "../../../test/support/clients.ts";
import { openTestStore } from "../../../test/support/open-store.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";

const audience = "https://orders.example.com";
const other = "https://other.example.com";

/** Starts a service, the server that authorizes its requests, and the Envoy in front of both. */
async function startProtected(atEnd: AtEnd) {
  const dataDir = makeTemporaryDirectory(atEnd);
  await addAccounts(dataDir);
  const flags = "--auth token --issuer-url https://id.example.com --trusted-proxies 127.0.0.1";
  const args = flags.split(" ");
  const server = await startBackend(atEnd, [...args, "--max-calls-per-second", "50"], dataDir);
  /** The request headers that the service received. */
  const received: http.IncomingHttpHeaders[] = [];
  const orders = await startOrders(received, atEnd);
  const backends = { servers: [server.authority], orders: [orders] };
  const edge = await startTestEdge({ configuration: "protect.yaml", backends }, atEnd);
  await eventually(async () => expect((await askEdge(edge, "/")).status).toBe(401));
  const { office, closeOffice } = await openOffice(readConfig(["--data-dir", dataDir, ...args], {}));
  atEnd(closeOffice);
  return { server, edge, office, received };
}

/** Returns a token for the client with this name. */
async function getTokenOf(office: Office, client: string, resource = audience): Promise<string> {
  const { scopes = [] } = (await office.clients.find(client)) ?? {};
  return issueToClient(office, client, scopes, [resource]);
}

function askEdge(edge: TestEdge, path: string, token?: string, more: Partial<Ask> = {}) {
  const headers = { ...more.headers, ...(token && { authorization: `Bearer ${token}` }) };
  return request(edge, { path, ...more, headers });
}

describeEdge("a service behind Envoy that requires our tokens", () => {
  let edge: TestEdge;
  let office: Office;
  let received: http.IncomingHttpHeaders[];
  const atEnd = endAfterAll();
  beforeAll(async () => {
    ({ edge, office, received } = await startProtected(atEnd));
  });

  const getToken = (client: string, resource?: string) => getTokenOf(office, client, resource);
  const ask = (path: string, token?: string, more?: Partial<Ask>) => askEdge(edge, path, token, more);
  const reader = { "x-auth-subject": "reader", "x-auth-role": "user", "x-auth-scopes": "orders.read" };

  it("answers 401 without a token, says how to authenticate, and does not reach the service", async () => {
    const before = received.length;
    const { status, headers, body } = await ask("/orders");
    expect([status, headers["www-authenticate"]]).toEqual([401, "Bearer"]);
    expect(JSON.parse(body)).toMatchObject({ status: "error", code: "UNAUTHENTICATED" });
    expect(received).toHaveLength(before);
  });

  it("passes the token's owner and scopes to the service, but not the token", async () => {
    const token = await getToken("reader");
    const headers = JSON.parse((await ask("/orders", token)).body);
    expect(headers).toMatchObject({ ...reader, "x-auth-client": "reader" });
    const open = JSON.parse((await ask("/public/news", token)).body);
    for (const passed of [headers, open]) expect(passed).not.toHaveProperty("authorization");
  });

  it("prevents impersonation, with a token and on an open route", async () => {
    const claims = { "x-auth-subject": "root", "x-auth-scopes": "everything", "x-auth-role": "admin" };
    const withToken = await ask("/orders", await getToken("reader"), { headers: claims });
    expect(JSON.parse(withToken.body)).toMatchObject(reader);
    const open = JSON.parse((await ask("/public/news", undefined, { headers: claims })).body);
    expect(Object.keys(open).filter((name) => name.startsWith("x-auth"))).toEqual([]);
  });

  const isInvalid = expect.stringMatching(/^Bearer error="invalid_token"/);
  const lacks = 'Bearer error="insufficient_scope"';
  it.each<[string, client: string, Partial<Ask>, status: number, says: unknown, resource?: string]>([
    ["a token for a different service", "reader", {}, 401, isInvalid, other],
    ["a token without the scope", "reader", { method: "POST" }, 403, `${lacks}, scope="orders.write"`],
    ["a token without the role", "writer", { path: "/admin/users" }, 403, lacks],
  ])("rejects %s, and says why", async (_, client, more, status, says, resource) => {
    const answer = await ask("/orders", await getToken(client, resource), more);
    expect([answer.status, answer.headers["www-authenticate"]]).toEqual([status, says]);
  });

  it.each([
    ["POST", "/orders", "writer"],
    ["GET", "/admin/users", "chief"],
  ])("accepts %s %s from %s", async (method, path, client) => {
    expect((await ask(path, await getToken(client), { method })).status).toBe(200);
  });

  it.each(["PUT", "PATCH", "DELETE"])("requires the write scope for %s too", async (method) => {
    expect((await ask("/orders/1", await getToken("reader"), { method })).status).toBe(403);
    expect((await ask("/orders/1", await getToken("writer"), { method })).status).toBe(200);
  });

  it.each([
    ...["/admin", "/admin/", "/orders/../admin/users", "/public/..;/admin", "/Admin/users"],
    "/admin;a=b/users",
  ])("requires the role for %s", async (path) => {
    expect((await ask(path, await getToken("writer"))).status).toBe(403);
  });

  it.each([
    ...["/public/..%2Fadmin/users", "/public%2f..%2fadmin", "/admin%2Fusers", "/public/..%5cadmin"],
    ...["/public/%2e%2e;/admin", "/orders/.%2E;a=b/admin", "/;/admin"],
  ])("rejects %s, which the service may read as a different path", async (path) => {
    expect((await ask(path)).status).toBe(400);
    expect((await ask(path, await getToken("writer"))).status).toBe(400);
  });

  it("rejects a token soon after its revocation, and all tokens of a removed client", async () => {
    const [revoked, orphaned] = [await getToken("reader"), await getToken("leaver")];
    for (const token of [revoked, orphaned]) expect((await ask("/orders", token)).status).toBe(200);
    const origin = { clientAddress: "", requestId: "" };
    await office.revocations.add({ tokenId: String(decodeJwt(revoked).jti), client: "reader", origin });
    await office.clients.remove("leaver");
    for (const token of [revoked, orphaned])
      await eventually(async () => expect((await ask("/orders", token)).status).toBe(401));
    expect((await ask("/orders", await getToken("reader"))).status).toBe(200);
  });

  it("applies rate limits per client address, not per Envoy address", async () => {
    const headers = { ":path": "/orders", authorization: `Bearer ${await getToken("reader")}` };
    // One connection each: 200 handshakes may take so long that no limit is reached.
    const connectFrom = (localAddress: string) => connectHttp2(edge, { localAddress });
    const [many, few] = [connectFrom("127.0.0.5"), connectFrom("127.0.0.6")];
    const statuses = new Set<number>();
    for (let rounds = 0; rounds < 10 && !statuses.has(503); rounds += 1) {
      const asked = Array.from({ length: 200 }, () => requestHttp2(many, headers));
      for (const { status } of await Promise.all(asked)) statuses.add(status);
    }
    expect(statuses).toEqual(new Set([200, 503]));
    expect((await requestHttp2(few, headers)).status).toBe(200);
  });

  it("denies everything while the server is down, and lets nothing reach the service", async () => {
    const other = await startProtected(onTestFinished);
    const token = await getTokenOf(other.office, "reader");
    await other.server.stop("SIGKILL");
    expect((await askEdge(other.edge, "/orders", token)).status).toBe(503);
    expect(other.received).toHaveLength(0);
    expect((await askEdge(other.edge, "/public/news")).status).toBe(200);
  });
});

interface Ask {
  readonly path: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string | string[]>>;
}

async function request({ url, ca }: TestEdge, ask: Partial<Ask>) {
  const options = { ca, agent: false, ...ask, servername: "localhost" };
  const sent = https.request(new URL(ask.path ?? "/", url), options);
  sent.end();
  const [answer] = (await once(sent, "response")) as [http.IncomingMessage];
  const chunks = await Array.fromAsync(answer as AsyncIterable<Buffer>);
  return { status: answer.statusCode, headers: answer.headers, body: Buffer.concat(chunks).toString() };
}

/** The service: it returns the headers that it received. */
async function startOrders(received: http.IncomingHttpHeaders[], atEnd: AtEnd): Promise<string> {
  const service = http.createServer((req, res) => {
    received.push(req.headers);
    res.setHeader("content-type", "application/json").end(JSON.stringify(req.headers));
  });
  service.listen(0, "127.0.0.1");
  await once(service, "listening");
  atEnd(() => {
    service.closeAllConnections();
    service.close();
  });
  return `127.0.0.1:${(service.address() as AddressInfo).port}`;
}

async function addAccounts(dataDir: string): Promise<void> {
  const provider = await createCryptoProvider("openssl");
  const store = await openTestStore(dataDir, provider);
  const clients = createClientStore(store);
  const add = (name: string, role: NewClient["role"], scopes: string[]) =>
    clients.add(describeClient(name, { role, scopes, audiences: [audience, other] }), new Date());
  await add("reader", "user", ["orders.read"]);
  await add("writer", "user", ["orders.read", "orders.write"]);
  await add("chief", "admin", ["orders.write"]);
  await add("leaver", "user", ["orders.read"]);
  await store.close();
  await provider.close();
}
