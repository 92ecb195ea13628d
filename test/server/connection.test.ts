/** What a server reports about the connection of a call, for clients of every kind, and behind proxies. */
import { once } from "node:events";
import https from "node:https";
import net, { type AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
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

/** The report over an open connection, which the server closes afterwards. */
async function reportOn(socket: TLSSocket) {
  socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`);
  return JSON.parse((await readToEnd(socket)).split("\r\n\r\n")[1] ?? "");
}

/** A relay that changes the client's first bytes. Returns its port. */
async function relayTo(port: number, send: (hello: Buffer, to: net.Socket) => void): Promise<number> {
  const relay = net.createServer((client) => {
    const server = connectTcp(port);
    client.once("data", (hello: Buffer) => {
      send(hello, server);
      client.pipe(server);
    });
    server.pipe(client);
    client.on("error", () => void server.destroy());
  });
  onTestFinished(() => void relay.close());
  relay.listen(0, "127.0.0.1");
  await once(relay, "listening");
  return (relay.address() as AddressInfo).port;
}

describe("GetConnection over the server's own TLS", { timeout }, () => {
  const atEnd = endAfterAll();
  let place: TlsPlace;
  beforeAll(async () => {
    place = await serveTls({ services }, atEnd);
  }, timeout);

  const groups = [
    {
      curves: "X25519MLKEM768:X25519",
      offered: ["X25519MLKEM768", "x25519"],
      group: "X25519MLKEM768",
      hybrid: true,
    },
    { curves: "X25519", offered: ["x25519"], group: "x25519", hybrid: false },
    { curves: "P-384", offered: ["secp384r1"], group: "secp384r1", hybrid: false },
    // The server asks for a different key share (HelloRetryRequest).
    {
      curves: "P-256:X25519MLKEM768",
      offered: ["secp256r1", "X25519MLKEM768"],
      group: "X25519MLKEM768",
      hybrid: true,
    },
    { curves: "P-256:P-384", offered: ["secp256r1", "secp384r1"], group: "secp384r1", hybrid: false },
  ];

  it.each(groups)("names the groups that a client offers ($curves), and the agreed one", async (row) => {
    const socket = await shakeHands(place, { ecdhCurve: row.curves, ALPNProtocols: ["http/1.1"] });
    const { group, hybrid, offered: offeredGroups } = row;
    expect(await reportOn(socket)).toMatchObject({ group, hybrid, offeredGroups });
  });

  it.each(groups)("names them after a resumption with a different group: $curves", async (row) => {
    const first = await shakeHands(place, { ecdhCurve: "X25519" });
    const [session]: Buffer[] = await once(first, "session");
    const socket = await shakeHands(place, { ecdhCurve: row.curves, session: session as Buffer });
    expect(socket.isSessionReused()).toBe(true);
    const { group, hybrid, offered: offeredGroups } = row;
    expect(await reportOn(socket)).toMatchObject({ group, hybrid, offeredGroups });
  });

  it("describes everything else as the client sees it", async () => {
    const sigalgs = "ecdsa_secp256r1_sha256:mldsa65:rsa_pss_rsae_sha384";
    const socket = await shakeHands(place, { sigalgs, ALPNProtocols: ["http/1.1"] });
    const { standardName } = socket.getCipher();
    const report = await reportOn(socket);
    expect(report).toMatchObject({
      tls: true,
      version: "TLS 1.3",
      cipherSuite: standardName,
      alpn: "http/1.1",
      offeredSignatureAlgorithms: sigalgs.split(":"),
      terminatedBy: "server",
    });
  });

  it.each(["TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"])(
    "names the cipher suite %s",
    async (ciphers) => {
      expect(await reportOf(place, { ciphers })).toMatchObject({ cipherSuite: ciphers });
    },
  );

  it("describes every request on an HTTP/2 connection", async () => {
    const session = await connectSession(place, { ecdhCurve: "X25519MLKEM768" });
    const ask = async () => JSON.parse((await request(session, { ":path": path })).body.toString());
    const first = await ask();
    expect(first).toMatchObject({ alpn: "h2", group: "X25519MLKEM768", offeredGroups: ["X25519MLKEM768"] });
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
    const port = await relayTo(place.port, (hello, to) => {
      to.setNoDelay();
      for (const byte of hello) to.write(Buffer.of(byte));
    });
    const report = await reportOf({ ...place, port }, { ecdhCurve: "X25519MLKEM768" });
    expect(report).toMatchObject({ group: "X25519MLKEM768", offeredGroups: ["X25519MLKEM768"] });
  });

  it("serves a client whose ClientHello is too long to be read, without its offers", async () => {
    const ALPNProtocols = [
      "http/1.1",
      ...Array.from({ length: 100 }, (_none, index) => `${index}`.padEnd(200, "x")),
    ];
    const socket = await shakeHands(place, { ALPNProtocols });
    expect(await reportOn(socket)).toMatchObject({
      tls: true,
      group: "X25519MLKEM768",
      offeredGroups: [],
      offeredSignatureAlgorithms: [],
    });
  });

  it("ignores the headers of clients that are no trusted proxies", async () => {
    const headers = { "x-forwarded-proto": "http", "x-tls-group": "x448" };
    expect(await reportOf(place, { headers })).toMatchObject({ tls: true, terminatedBy: "server" });
  });
});

describe("GetConnection without TLS", () => {
  it("reports only that", async () => {
    const { url } = await serve({ services });
    const headers = { "x-forwarded-proto": "https", "x-tls-version": "TLSv1.3" };
    for (const options of [{}, { headers }]) {
      const { body } = await requestAt(`${url}${path}`, options);
      expect(JSON.parse(body.toString())).toEqual({
        status: "success",
        tls: false,
        offeredGroups: [],
        offeredSignatureAlgorithms: [],
      });
    }
  });
});

describe("GetConnection behind a trusted proxy", () => {
  const noOffers = { offeredGroups: [], offeredSignatureAlgorithms: [] };

  it.each([
    {
      what: "what Envoy reports",
      headers: {
        "x-forwarded-proto": "https",
        "x-tls-version": "TLSv1.3",
        "x-tls-group": "X25519MLKEM768",
        "x-tls-cipher-suite": "TLS_AES_256_GCM_SHA384",
      },
      report: {
        tls: true,
        version: "TLS 1.3",
        group: "X25519MLKEM768",
        hybrid: true,
        cipherSuite: "TLS_AES_256_GCM_SHA384",
        terminatedBy: "proxy",
      },
    },
    {
      what: "a group by its IANA name",
      headers: { "x-forwarded-proto": "https", "x-tls-group": "P-384" },
      report: { tls: true, group: "secp384r1", hybrid: false, terminatedBy: "proxy" },
    },
    {
      what: "nothing that the proxy does not",
      headers: { "x-forwarded-proto": "https", "x-tls-group": "-", "x-tls-version": "" },
      report: { tls: true, terminatedBy: "proxy" },
    },
    {
      what: "no texts that cannot be names",
      headers: { "x-forwarded-proto": "https", "x-tls-group": "x".repeat(65), "x-tls-version": "<b>1.3</b>" },
      report: { tls: true, terminatedBy: "proxy" },
    },
    { what: "a client without TLS", headers: { "x-forwarded-proto": "http" }, report: { tls: false } },
    {
      what: "a local client that comes past the proxy",
      headers: { "x-tls-group": "x448" },
      report: { tls: false },
    },
  ])("reports $what", async ({ headers, report }) => {
    const { url } = await serve({ services, trustedProxies: ["127.0.0.1"] });
    const { body } = await requestAt(`${url}${path}`, { headers });
    expect(JSON.parse(body.toString())).toEqual({ status: "success", ...report, ...noOffers });
  });

  it("reports the client's connection, not the proxy's own", { timeout }, async () => {
    const place = await serveTls({ services, trustedProxies: ["127.0.0.1"] });
    const headers = { "x-forwarded-proto": "https", "x-tls-group": "X25519" };
    expect(await reportOf(place, { headers, ecdhCurve: "P-384" })).toMatchObject({
      group: "x25519",
      terminatedBy: "proxy",
      offeredGroups: [],
    });
  });
});

describe("a server with its own TLS", { timeout }, () => {
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
