/** What a server reports about the connection of a call, for clients of every kind, and behind proxies. */
import { once } from "node:events";
import https from "node:https";
import net, { type AddressInfo } from "node:net";
import type { ConnectionOptions, TLSSocket } from "node:tls";
import { createServiceImplSpec } from "@connectrpc/connect";
import { beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { connectionKey } from "../../src/calls/call-values.ts";
import { readClientHello } from "../../src/server/client-hello.ts";
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

  // Below, it is read in several records, and with other bytes after it.
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

const overTls = { "x-forwarded-proto": "https" };
const proxied = { tls: true, terminatedBy: "proxy" };
const fromEnvoy = {
  ...overTls,
  "x-tls-version": "TLSv1.3",
  "x-tls-group": "X25519MLKEM768",
  "x-tls-cipher-suite": "TLS_AES_256_GCM_SHA384",
};
const ofEnvoy = { version: "TLS 1.3", group: "X25519MLKEM768", cipherSuite: "TLS_AES_256_GCM_SHA384" };
const invalid = { "x-tls-group": "x".repeat(65), "x-tls-version": "<b>1.3</b>" };
const local = "127.0.0.1";

it.each<[what: string, proxy: string, headers: Record<string, string>, report: object]>([
  ["nothing without a trusted proxy", "192.0.2.1", fromEnvoy, { tls: false }],
  ["what Envoy reports", local, fromEnvoy, { ...proxied, ...ofEnvoy, hybrid: true }],
  [
    "a group by its IANA name",
    local,
    { ...overTls, "x-tls-group": "P-384" },
    { ...proxied, group: "secp384r1", hybrid: false },
  ],
  [
    "nothing that the proxy does not",
    local,
    { ...overTls, "x-tls-group": "-", "x-tls-version": "" },
    proxied,
  ],
  ["no texts that cannot be names", local, { ...overTls, ...invalid }, proxied],
  ["a client without TLS", local, { "x-forwarded-proto": "http" }, { tls: false }],
  ["a local client that comes past the proxy", local, { "x-tls-group": "x448" }, { tls: false }],
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

const numberOf = (value: number, bytes: number): Buffer => {
  const number = Buffer.alloc(bytes);
  number.writeUIntBE(value, 0, bytes);
  return number;
};

/** A vector of TLS: its length in a number of bytes, and its content (RFC 8446, section 3.4). */
const vector = (lengthBytes: number, ...content: Buffer[]): Buffer => {
  const bytes = Buffer.concat(content);
  return Buffer.concat([numberOf(bytes.length, lengthBytes), bytes]);
};
const listOf = (codePoints: readonly number[]): Buffer =>
  vector(2, ...codePoints.map((code) => numberOf(code, 2)));
const extension = (type: number, content: Buffer): Buffer =>
  Buffer.concat([numberOf(type, 2), vector(2, content)]);
const record = (fragment: Buffer): Buffer =>
  Buffer.concat([Buffer.from("160301", "hex"), vector(2, fragment)]);

/** A handshake message with a ClientHello (RFC 8446, section 4.1.2). */
function helloWith(...extensions: Buffer[]): Buffer {
  const body = [
    Buffer.alloc(2 + 32, 3),
    vector(1, Buffer.alloc(32)),
    listOf([0x1302]),
    vector(1, Buffer.of(0)),
  ];
  return Buffer.concat([Buffer.of(1), vector(3, ...body, vector(2, ...extensions))]);
}

const groupsOf = (...codes: number[]): Buffer => extension(10, listOf(codes));
const algorithmsOf = (...codes: number[]): Buffer => extension(13, listOf(codes));

/** An extension that fills the message. */
const padding = (bytes: number): Buffer => extension(21, Buffer.alloc(bytes));
const message = helloWith(groupsOf(0x1a1a, 4588, 29), padding(40), algorithmsOf(0x0905, 0x0403));
const offers = {
  groups: Uint16Array.of(0x1a1a, 4588, 29),
  signatureAlgorithms: Uint16Array.of(0x0905, 0x0403),
};

/** Spreads a message over records of at most this length. */
function recordsOf(bytes: Buffer, length: number): Buffer {
  const count = Math.ceil(bytes.length / length);
  const fragments = Array.from({ length: count }, (_none, i) => bytes.subarray(i * length, (i + 1) * length));
  return Buffer.concat(fragments.map(record));
}

describe("readClientHello", () => {
  it.each([
    ["in one record", record(message)],
    ["in several records", recordsOf(message, 10)],
    ["before other records", Buffer.concat([record(message), Buffer.from("140303000101", "hex")])],
  ])("returns the offered groups and signature algorithms, in the client's order: %s", (_, bytes) => {
    expect(readClientHello(bytes)).toEqual(offers);
  });

  it("waits for the rest of a ClientHello, wherever it is cut", () => {
    for (const whole of [record(message), recordsOf(message, 10)]) {
      const cuts = Array.from({ length: whole.length }, (_none, end) =>
        readClientHello(whole.subarray(0, end)),
      );
      expect(new Set(cuts)).toEqual(new Set(["incomplete"]));
    }
  });

  it("returns empty lists for extensions that are absent", () => {
    expect(readClientHello(record(helloWith(padding(1))))).toEqual({
      groups: new Uint16Array(),
      signatureAlgorithms: new Uint16Array(),
    });
  });

  it("keeps at most 100 code points of each list", () => {
    const many = Array.from({ length: 300 }, (_none, index) => index);
    const read = readClientHello(record(helloWith(groupsOf(...many), algorithmsOf(...many))));
    const kept = Uint16Array.from(many.slice(0, 100));
    expect(read).toEqual({ groups: kept, signatureAlgorithms: kept });
  });

  const handshakeOf = (type: number, ...content: Buffer[]): Buffer =>
    record(Buffer.concat([Buffer.of(type), ...content]));
  it.each<[what: string, bytes: Buffer]>([
    ["HTTP", Buffer.from("GET / HTTP/1.1\r\n\r\n")],
    ["the first byte of something else", Buffer.of(0x80)],
    ["an alert", Buffer.from("15030100020100", "hex")],
    ["a different handshake message", handshakeOf(2, message.subarray(1))],
    ["a list longer than its extension", record(helloWith(extension(10, Buffer.of(0, 9, 0, 29))))],
    ["an extension longer than the message", record(helloWith(Buffer.of(0, 10, 1, 0)))],
    ["a message without extensions", handshakeOf(1, vector(3, Buffer.alloc(36)))],
    ["a message longer than 16 KiB", record(helloWith(padding(17_000)).subarray(0, 100))],
    [
      "a record that never ends",
      Buffer.concat([Buffer.from("160301ffff010000", "hex"), Buffer.alloc(17_000)]),
    ],
    ["more than 32 records", recordsOf(message, 1).subarray(0, 33 * 6)],
    ["empty records", Buffer.concat(Array.from({ length: 33 }, () => record(Buffer.alloc(0))))],
  ])("gives up on %s", (_what, bytes) => {
    expect(readClientHello(bytes)).toBeUndefined();
  });

  it("neither fails nor waits forever, whichever byte of a real ClientHello is altered", async () => {
    const hello = await captureClientHello();
    expect(readClientHello(hello)).toMatchObject({ groups: expect.any(Uint16Array) });
    for (let at = 0; at < hello.length; at += 1)
      for (const value of [0x00, 0x7f, 0xff]) {
        const altered = Buffer.from(hello);
        altered[at] = value;
        const rest = Buffer.alloc(17_000);
        expect(readClientHello(Buffer.concat([altered, rest]))).not.toBe("incomplete");
      }
  });
});
