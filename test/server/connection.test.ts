/** What a server reports about the connection of a call, for clients of every kind, and behind proxies. */
import { once } from "node:events";
import https from "node:https";
import net, { type AddressInfo } from "node:net";
import type { ConnectionOptions, TLSSocket } from "node:tls";
import { createServiceImplSpec } from "@connectrpc/connect";
import { beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { connectionKey } from "../../src/calls/call-values.ts";
import { endAfterAll } from "../support/at-end.ts";
import { connectTcp, readToEnd, request, requestHttp1 as requestAt } from "./raw.ts";
import { serve } from "./serve.ts";
import {
  captureClientHello,
  connectSession,
  requestHttp1,
  serveTls,
  shakeHands,
  type TlsPlace,
} from "./tls-clients.ts";

/** Timeout in milliseconds for tests that start programs on busy machines. */
const timeout = 180_000;

const path = "/api/grpc/connection";
const services = [
  createServiceImplSpec<typeof PqcService>(PqcService, {
    getConnection: (_req, { values }) => ({ ...values.get(connectionKey)() }),
  }),
];

/** The report over a new connection. */
async function reportOf(place: TlsPlace, options: Parameters<typeof requestHttp1>[2] = {}) {
  return JSON.parse((await requestHttp1(place, path, options)).body.toString());
}

/** The report over a connection, which the server closes afterwards. */
async function reportOver(place: TlsPlace, options: ConnectionOptions) {
  const socket = await shakeHands(place, options);
  const isResumed = socket.isSessionReused();
  socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`);
  const report = JSON.parse((await readToEnd(socket)).split("\r\n\r\n")[1] ?? "");
  return { isResumed, report };
}

describe("GetConnection over the server's own TLS", { timeout }, () => {
  const atEnd = endAfterAll();
  let place: TlsPlace;
  beforeAll(async () => {
    place = await serveTls({ services }, atEnd);
  }, timeout);

  const hybrid = "X25519MLKEM768";
  const groups: [ecdhCurve: string, offered: string[], group: string][] = [
    [`${hybrid}:X25519`, [hybrid, "x25519"], hybrid],
    ["X25519", ["x25519"], "x25519"],
    ["P-384", ["secp384r1"], "secp384r1"],
    // The server asks for a different key share (HelloRetryRequest).
    [`P-256:${hybrid}`, ["secp256r1", hybrid], hybrid],
    ["P-256:P-384", ["secp256r1", "secp384r1"], "secp384r1"],
  ];

  it.each(groups)("reports the offers %s and the agreed group", async (ecdhCurve, offeredGroups, group) => {
    const expected = { offeredGroups, group, hybrid: group === hybrid };
    const { report } = await reportOver(place, { ecdhCurve, ALPNProtocols: ["http/1.1"] });
    expect(report).toMatchObject(expected);
    // Even after a resumption with another group.
    const first = await shakeHands(place, { ecdhCurve: "X25519" });
    const [session]: Buffer[] = await once(first, "session");
    const second = await reportOver(place, { ecdhCurve, session: session as Buffer });
    expect(second).toMatchObject({ isResumed: true, report: expected });
  });

  const suites = ["TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"];
  it.each(suites)("describes everything else as the client sees it, with %s", async (ciphers) => {
    const sigalgs = "ecdsa_secp256r1_sha256:mldsa65:rsa_pss_rsae_sha384";
    const { report } = await reportOver(place, { ciphers, sigalgs, ALPNProtocols: ["http/1.1"] });
    expect(report).toMatchObject({
      tls: true,
      version: "TLS 1.3",
      cipherSuite: ciphers,
      alpn: "http/1.1",
      offeredSignatureAlgorithms: sigalgs.split(":"),
      terminatedBy: "server",
    });
  });

  it("describes every request on an HTTP/2 connection", async () => {
    const session = await connectSession(place, { ecdhCurve: hybrid });
    const ask = async () => JSON.parse((await request(session, { ":path": path })).body.toString());
    const first = await ask();
    expect(first).toMatchObject({ alpn: "h2", group: hybrid, offeredGroups: [hybrid] });
    expect(await ask()).toEqual(first);
  });

  it("keeps the offers of simultaneous connections apart", async () => {
    const curves = Array.from({ length: 20 }, (_none, index) => (index % 2 === 0 ? "X25519" : "P-384"));
    const reports = await Promise.all(curves.map((ecdhCurve) => reportOf(place, { ecdhCurve })));
    const offered = reports.map(({ offeredGroups: [group] }) => (group === "x25519" ? "X25519" : "P-384"));
    expect(offered).toEqual(curves);
  });

  // client-hello.test.ts reads it in several records, and with other bytes after it.
  it("reads a ClientHello that arrives byte by byte", async () => {
    const relay = net.createServer((client) => {
      const server = connectTcp(place.port);
      client.once("data", (hello: Buffer) => {
        for (const byte of hello) server.write(Buffer.of(byte));
        client.pipe(server);
      });
      server.pipe(client);
      client.on("error", () => void server.destroy());
    });
    onTestFinished(() => void relay.close());
    relay.listen(0, "127.0.0.1");
    await once(relay, "listening");
    const { port } = relay.address() as AddressInfo;
    const report = await reportOf({ ...place, port }, { ecdhCurve: hybrid });
    expect(report).toMatchObject({ group: hybrid, offeredGroups: [hybrid] });
  });

  it("serves a client whose ClientHello is too long to be read, without its offers", async () => {
    const others = Array.from({ length: 100 }, (_none, index) => `${index}`.padEnd(200, "x"));
    const { report } = await reportOver(place, { ALPNProtocols: ["http/1.1", ...others] });
    expect(report).toMatchObject({
      ...{ tls: true, group: hybrid, offeredGroups: [], offeredSignatureAlgorithms: [] },
    });
  });

  it("ignores the headers of clients that are no trusted proxies", async () => {
    const headers = { "x-forwarded-proto": "http", "x-tls-group": "x448" };
    expect(await reportOf(place, { headers })).toMatchObject({ tls: true, terminatedBy: "server" });
  });
});

const proxied = { tls: true, terminatedBy: "proxy" };
const fromEnvoy = {
  "x-tls-version": "TLSv1.3",
  "x-tls-group": "X25519MLKEM768",
  "x-tls-cipher-suite": "TLS_AES_256_GCM_SHA384",
};
const ofEnvoy = {
  ...{ version: "TLS 1.3", group: "X25519MLKEM768", hybrid: true },
  cipherSuite: "TLS_AES_256_GCM_SHA384",
};
const invalid = { "x-tls-group": "x".repeat(65), "x-tls-version": "<b>1.3</b>" };

it.each<[what: string, proxy: string, headers: Record<string, string>, report: object]>([
  [
    "nothing without a trusted proxy",
    "192.0.2.1",
    { "x-forwarded-proto": "https", ...fromEnvoy },
    { tls: false },
  ],
  [
    "what Envoy reports",
    "127.0.0.1",
    { "x-forwarded-proto": "https", ...fromEnvoy },
    { ...proxied, ...ofEnvoy },
  ],
  [
    "a group by its IANA name",
    "127.0.0.1",
    { "x-forwarded-proto": "https", "x-tls-group": "P-384" },
    { ...proxied, group: "secp384r1", hybrid: false },
  ],
  [
    "nothing that the proxy does not",
    "127.0.0.1",
    { "x-forwarded-proto": "https", "x-tls-group": "-", "x-tls-version": "" },
    proxied,
  ],
  ["no texts that cannot be names", "127.0.0.1", { "x-forwarded-proto": "https", ...invalid }, proxied],
  ["a client without TLS", "127.0.0.1", { "x-forwarded-proto": "http" }, { tls: false }],
  ["a local client that comes past the proxy", "127.0.0.1", { "x-tls-group": "x448" }, { tls: false }],
])("GetConnection without own TLS reports %s", async (_what, proxy, headers, report) => {
  const { url } = await serve({ services, trustedProxies: [proxy] });
  const { body } = await requestAt(`${url}${path}`, { headers });
  const noOffers = { offeredGroups: [], offeredSignatureAlgorithms: [] };
  expect(JSON.parse(body.toString())).toEqual({ status: "success", ...report, ...noOffers });
});

describe("a server with its own TLS", { timeout }, () => {
  it("behind a trusted proxy reports the client's connection, not the proxy's own", async () => {
    const place = await serveTls({ services, trustedProxies: ["127.0.0.1"] });
    const headers = { "x-forwarded-proto": "https", "x-tls-group": "X25519" };
    const report = await reportOf(place, { headers, ecdhCurve: "P-384" });
    expect(report).toMatchObject({ group: "x25519", terminatedBy: "proxy", offeredGroups: [] });
  });

  it("closes the connection of a client whose ClientHello takes too long, however often a byte arrives", async () => {
    const { port } = await serveTls({ limits: { maxHeaderMs: 300 } });
    const socket = connectTcp(port);
    const hello = await captureClientHello();
    let sent = 0;
    const timer = setInterval(() => void socket.write(hello.subarray(sent, ++sent)), 20);
    onTestFinished(() => clearInterval(timer));
    await readToEnd(socket);
    expect(sent).toBeLessThan(hello.length);
  });

  it("never has a key log", async () => {
    const created = vi.spyOn(https, "createServer");
    onTestFinished(() => created.mockRestore());
    const place = await serveTls({ services });
    const server = created.mock.results[0]?.value as https.Server;
    const counts: number[] = [];
    server.on("secureConnection", (socket: TLSSocket) => void counts.push(socket.listenerCount("keylog")));
    await reportOf(place);
    expect([server.listenerCount("keylog"), ...counts]).toEqual([0, 0]);
  });
});
