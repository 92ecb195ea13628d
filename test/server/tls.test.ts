/**
 * The server's own TLS: which client gets which group, protocol and certificate, and the effect of bad
 * clients and files.
 */
import { randomBytes, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import type http2 from "node:http2";
import { join } from "node:path";
import type { ConnectionOptions } from "node:tls";
import { createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { pino } from "pino";
import { afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { watchTls } from "../../src/server/tls.ts";
import { isMissing, run } from "../interop/tools.ts";
import { endAfterAll } from "../support/at-end.ts";
import { type Run, runToEndHere } from "../support/run-here.ts";
import { connectTcp, exchangeBytes, jsonRefusalOf, readToEnd, request } from "./raw.ts";
import {
  captureClientHello,
  connectSession,
  createKey,
  damages,
  ecdsa,
  expectNoSecret,
  fingerprintOf,
  firstHalf,
  issue,
  makeCertificates,
  openGrpc,
  optionsOf2,
  pairOf,
  readLog,
  requestHttp1,
  serveTls,
  shakeHands,
  shownBy,
  startTlsServer,
  type TlsPlace,
  type TlsServer,
  tlsFile,
  watchAudit,
} from "./tls-clients.ts";

/** An address of another machine (RFC 5737). */
const unreachable = "192.0.2.1";

/** Timeout in milliseconds for tests that start programs on busy machines. */
const timeout = 180_000;

const groups = [
  { offers: "the hybrid, X25519 and P-384", curves: "X25519MLKEM768:X25519:P-384", group: "X25519MLKEM768" },
  { offers: "X25519 first and the hybrid last", curves: "X25519:X25519MLKEM768", group: "X25519MLKEM768" },
  { offers: "P-384 first and the hybrid last", curves: "P-384:X25519MLKEM768", group: "X25519MLKEM768" },
  { offers: "P-256 first and the hybrid last", curves: "P-256:X25519MLKEM768", group: "X25519MLKEM768" },
  { offers: "the hybrid alone", curves: "X25519MLKEM768", group: "X25519MLKEM768" },
  { offers: "P-384 first and X25519 last", curves: "P-384:X25519", group: "X25519" },
  { offers: "X25519 alone", curves: "X25519", group: "X25519" },
  { offers: "P-384 alone", curves: "P-384", group: "secp384r1" },
  { offers: "P-256 first and P-384 last", curves: "P-256:P-384", group: "secp384r1" },
  { offers: "P-256 alone, like gRPC for C++ before 1.83", curves: "P-256", group: "prime256v1" },
];

/** Clients of each protocol, with their own connections. */
const transports: readonly { name: string; make: (place: TlsPlace) => Transport }[] = [
  { name: "gRPC", make: (place) => openGrpc(place).transport },
  { name: "gRPC-Web over HTTP/1.1", make: (place) => createGrpcWebTransport(optionsOf1(place)) },
  { name: "gRPC-Web over HTTP/2", make: (place) => createGrpcWebTransport(optionsOf2(place)) },
  { name: "Connect over HTTP/1.1", make: (place) => createConnectTransport(optionsOf1(place)) },
  { name: "Connect over HTTP/2", make: (place) => createConnectTransport(optionsOf2(place)) },
];

/**
 * A complete SSL 2 CLIENT-HELLO: the server would only wait for the rest of a partial one. 46 bytes, version
 * 0.2, seven kinds of cipher, no session and a challenge of 16 bytes.
 */
const ssl2Hello = Buffer.concat([
  Buffer.from("802e010002001500000010", "hex"),
  Buffer.from("010080", "hex"),
  Buffer.alloc(18 + 16, 2),
]);

const alerts = {
  groups: "ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE",
  version: "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION",
  alpn: "ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL",
};

describe("the program with --tls-cert and --tls-key", { timeout }, () => {
  const atEnd = endAfterAll();
  let server: TlsServer;
  beforeAll(async () => {
    server = await startTlsServer(atEnd);
  }, timeout);

  it.each(groups)("agrees on $group with a client that offers $offers", async ({ curves, group }) => {
    const socket = await shakeHands(server, { ecdhCurve: curves });
    expect(socket.getProtocol()).toBe("TLSv1.3");
    expect(socket.getEphemeralKeyInfo()).toMatchObject({ name: group });
  });

  it.each<{ what: string; options: ConnectionOptions; code: string }>([
    { what: "a client that offers only P-521", options: { ecdhCurve: "P-521" }, code: alerts.groups },
    { what: "a client that offers only ML-KEM-768", options: { ecdhCurve: "MLKEM768" }, code: alerts.groups },
    { what: "TLS 1.2", options: { maxVersion: "TLSv1.2" }, code: alerts.version },
    {
      what: "a client that offers no supported protocol",
      options: { ALPNProtocols: ["h3"] },
      code: alerts.alpn,
    },
  ])("refuses $what", async ({ options, code }) => {
    await expect(shakeHands(server, options)).rejects.toMatchObject({ code });
  });

  it.each([
    { offered: ["h2", "http/1.1"], chosen: "h2" },
    { offered: ["http/1.1", "h2"], chosen: "h2" },
    { offered: ["http/1.1"], chosen: "http/1.1" },
    { offered: ["h3", "http/1.0", "http/1.1"], chosen: "http/1.1" },
    { offered: undefined, chosen: false },
  ])("chooses $chosen from the protocols $offered", async ({ offered, chosen }) => {
    const socket = await shakeHands(server, offered && { ALPNProtocols: offered });
    expect(socket.alpnProtocol).toBe(chosen);
  });

  it("speaks HTTP/1.1 with a client that offers no protocol", async () => {
    const { status } = await requestHttp1(server, "/api/hello", { ALPNProtocols: [] });
    expect(status).toBe(200);
  });

  it("closes the connection of a client that speaks HTTP/2 without having offered it", async () => {
    const socket = await shakeHands(server);
    socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    // RFC 9113, section 3.3, leaves no way to answer it in HTTP/2.
    expect(await readToEnd(socket)).not.toContain("200 OK");
    expect(await livez(server)).toBe(200);
  });

  it.each([
    { algorithm: "ECDSA-P256", name: "gateway", ca: "ca", sigalgs: ecdsa },
    { algorithm: "ML-DSA-65", name: "gateway-mldsa", ca: "ca-mldsa", sigalgs: "mldsa65" },
  ])(
    "presents the $algorithm certificate to a client that accepts no other",
    async ({ name, ca, sigalgs }) => {
      const trusted = { ...server, ca: readFileSync(tlsFile(server.dataDir, `${ca}.crt`), "utf8") };
      const socket = await shakeHands(trusted, { sigalgs });
      expect(socket.getPeerX509Certificate()?.fingerprint256).toBe(fingerprintOf(server.dataDir, name));
    },
  );

  it.each(transports)(
    "answers calls, and sends stream messages without delay, over $name",
    async ({ make }) => {
      const kms = createClient(KmsService, make(server));
      const audit = watchAudit(kms);
      await audit.sees(await createKey(kms));
      await audit.stop();
    },
  );

  it.each([
    { over: "HTTP/1.1", ask: (path: string) => requestHttp1(server, path) },
    {
      over: "HTTP/2",
      ask: async (path: string) => request(await connectSession(server), { ":path": path }),
    },
  ])("answers REST over $over", async ({ ask }) => {
    const { status, body } = await ask("/api/hello");
    expect([status, JSON.parse(body.toString()).status]).toEqual([200, "success"]);
    const refused = await ask("/api/nowhere");
    expect([refused.status, jsonRefusalOf(refused.body).reason]).toEqual([404, "ROUTE_NOT_FOUND"]);
  });

  const grpcurl = isMissing("grpcurl") ? "grpcurl, which is not installed" : "grpcurl";
  it.skipIf(isMissing("grpcurl"))(`is trusted with -cacert, and not without, by ${grpcurl}`, async () => {
    const call = [server.authority, "pqc.TokenService/Hello"];
    const trusting = await run("grpcurl", ["-cacert", tlsFile(server.dataDir, "ca.crt"), ...call]);
    expect(trusting.code).toBe(0);
    expect(JSON.parse(trusting.stdout)).toMatchObject({ status: "success" });
    const untrusting = await run("grpcurl", call);
    expect(untrusting.code).not.toBe(0);
    expect(untrusting.stderr).toContain("certificate signed by unknown authority");
  });

  const curl = isMissing("curl") ? "curl, which is not installed" : "curl";
  it.skipIf(isMissing("curl"))(`is trusted with --cacert, and not without, by ${curl}`, async () => {
    const flags = ["-s", "-o", "-", "-w", " %{http_version}", `${server.url}/livez`];
    const trusting = await run("curl", ["--cacert", tlsFile(server.dataDir, "ca.crt"), ...flags]);
    expect(trusting).toMatchObject({ code: 0, stdout: "alive\n 2" });
    // curl, exit codes: 60, the certificate cannot be verified.
    expect((await run("curl", flags)).code).toBe(60);
  });

  describe("while another client is served,", () => {
    let bystander: http2.ClientHttp2Session;
    beforeEach(async () => {
      bystander = await connectSession(server);
    });
    afterEach(async () => {
      expect((await request(bystander, { ":path": "/livez" })).status).toBe(200);
      expect(await livez(server)).toBe(200);
    });

    it.each([
      { what: "a request of HTTP/1.1 in the clear", bytes: () => "GET / HTTP/1.1\r\nhost: x\r\n\r\n" },
      { what: "the preface of HTTP/2 in the clear", bytes: () => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" },
      { what: "bytes at random", bytes: () => Buffer.concat([Buffer.of(0xff), randomBytes(2000)]) },
      { what: "an empty ClientHello", bytes: () => Buffer.from("160301000401000000", "hex") },
      { what: "application data before the handshake", bytes: () => Buffer.from("17030300020000", "hex") },
      { what: "a hello of SSL 2", bytes: () => ssl2Hello },
    ])("closes the connection of a client that sends $what", async ({ bytes }) => {
      const answer = Buffer.from(await exchangeBytes(server.port, bytes()), "latin1");
      // RFC 8446, section 6: nothing, or an alert, which is a record of type 21.
      expect([undefined, 21]).toContain(answer.at(0));
      expect(answer.length).toBeLessThan(16);
    });

    it("closes the connection of a client that alters a byte of its ClientHello", async () => {
      const hello = await captureClientHello();
      // The length of the handshake message, which then ends within the list of groups.
      hello.writeUInt8(0x40, 8);
      const socket = connectTcp(server.port);
      socket.end(hello);
      const answer = Buffer.from(await readToEnd(socket), "latin1");
      expect([undefined, 21]).toContain(answer.at(0));
    });

    it("survives a client that disconnects in the middle of a handshake", async () => {
      const hello = await captureClientHello();
      const socket = connectTcp(server.port);
      socket.write(hello);
      await once(socket, "data");
      socket.resetAndDestroy();
    });
  });
});

describe("a server with TLS and a header timeout", { timeout }, () => {
  it.each([
    { what: "sends nothing", begin: async () => Buffer.alloc(0) },
    { what: "stops after half a ClientHello", begin: async () => firstHalf(await captureClientHello()) },
    { what: "stops after its ClientHello", begin: captureClientHello },
  ])("closes the connection of a client that $what after the timeout", async ({ begin }) => {
    const { port } = await serveTls({ limits: { maxHeaderMs: 200 } });
    const begun = await begin();
    const startedMs = performance.now();
    const socket = connectTcp(port);
    if (begun.length > 0) socket.write(begun);
    await readToEnd(socket);
    expect(performance.now() - startedMs).toBeGreaterThan(190);
  });

  it("closes the connection of a client that announces a record longer than any may be after the timeout", async () => {
    const place = await serveTls({ limits: { maxHeaderMs: 1000 } });
    expect((await exchangeBytes(place.port, Buffer.from("160301ffff01", "hex"))).length).toBeLessThan(16);
    expect(await livez(place)).toBe(200);
  });

  it("closes the connection of a client that completes the handshake and sends nothing after the timeout", async () => {
    // The handshake itself must complete before that, on a busy machine.
    const place = await serveTls({ limits: { maxHeaderMs: 5000 } });
    const socket = await shakeHands(place);
    expect(await readToEnd(socket)).toBe("");
  });

  it("serves other clients while one stalls", async () => {
    const place = await serveTls({ limits: { maxHeaderMs: 600_000 } });
    const stalled = connectTcp(place.port);
    stalled.write(firstHalf(await captureClientHello()));
    expect(await livez(place)).toBe(200);
    expect(stalled.destroyed).toBe(false);
  });
});

describe("a stopping server with TLS", { timeout }, () => {
  const longerThanTests = { maxHeaderMs: 2 * timeout, maxDrainMs: 2 * timeout };

  it.each([
    { what: "has sent nothing yet", begin: async () => Buffer.alloc(0) },
    { what: "is in the middle of a handshake", begin: captureClientHello },
  ])("does not wait for a client that $what", async ({ begin }) => {
    const { server, ...place } = await serveTls({ limits: longerThanTests });
    const stalled = connectTcp(place.port);
    await once(stalled, "connect");
    const begun = await begin();
    if (begun.length > 0) stalled.write(begun);
    // Connections are accepted in order: once this one is served, the server knows of the one before.
    expect(await livez(place)).toBe(200);
    const closed = readToEnd(stalled);
    await server.close();
    await closed;
  });

  it("ends at once if destroyed, even if a client is in the middle of a handshake", async () => {
    const { server, ...place } = await serveTls({ limits: longerThanTests });
    const stalled = connectTcp(place.port);
    stalled.write(firstHalf(await captureClientHello()));
    expect(await livez(place)).toBe(200);
    const closed = readToEnd(stalled);
    server.destroy();
    await Promise.all([server.close(), closed]);
  });
});

describe("polling for renewed certificates", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it.each(damages)("warns only once if $what", async ({ damage }) => {
    const { dataDir, watch } = await watched();
    await damage(dataDir);
    vi.advanceTimersByTime(10_000);
    expect(watch.levels).toEqual(["warn"]);
    expect(watch.applied).toBe(0);
  });

  it("returns a new pair once, within a second", async () => {
    const { dataDir, watch } = await watched();
    await issue(dataDir);
    vi.advanceTimersByTime(1000);
    expect(watch.applied).toBe(1);
    vi.advanceTimersByTime(10_000);
    expect(watch).toEqual({ applied: 1, levels: ["info"] });
  });

  it("does nothing while nothing changes", async () => {
    const { watch } = await watched();
    vi.advanceTimersByTime(10_000);
    expect(watch).toEqual({ applied: 0, levels: [] });
  });

  it("warns again when one mismatch is replaced by another", async () => {
    const { dataDir, watch } = await watched();
    writeFileSync(tlsFile(dataDir, "gateway.key"), "nothing");
    vi.advanceTimersByTime(3000);
    rmSync(tlsFile(dataDir, "gateway.key"));
    vi.advanceTimersByTime(3000);
    expect(watch).toEqual({ applied: 0, levels: ["warn", "warn"] });
  });

  it("ends when stopped", async () => {
    const { dataDir, watch, stop } = await watched();
    stop();
    await issue(dataDir);
    vi.advanceTimersByTime(10_000);
    expect(watch).toEqual({ applied: 0, levels: [] });
  });
});

describe("a start with TLS ends with code 2 and one sentence if", { timeout }, () => {
  const atEnd = endAfterAll();
  let dataDir: string;
  beforeAll(async () => {
    dataDir = await makeCertificates(atEnd);
  }, timeout);

  // Other files are tested in tls-files.test.ts.
  it("the key belongs to a different certificate, and names the file", async () => {
    const key = tlsFile(dataDir, "gateway-mldsa.key");
    const { code, stdout, stderr } = await begin(tlsFile(dataDir, "gateway.crt"), key);
    expect(stderr).toMatch(/^qsp: [^\n]+\n$/);
    const lines = stdout.split("\n").filter((line) => line !== "" && !line.startsWith("Created a new "));
    expect([code, lines]).toEqual([2, []]);
    expect(stderr).toContain(key);
    expectNoSecret(stderr, readFileSync(tlsFile(dataDir, "gateway.key"), "utf8"));
  });

  const opensslOr = isMissing("openssl") ? "openssl, which is not installed," : "openssl";
  it.skipIf(isMissing("openssl"))(`the key of ${opensslOr} is too short to be safe`, async () => {
    const [certificate, key] = [join(dataDir, "short.crt"), join(dataDir, "short.key")];
    const made = ["req", "-x509", "-newkey", "rsa:1024", "-nodes", "-days", "2", "-subj", "/CN=localhost"];
    expect((await run("openssl", [...made, "-keyout", key, "-out", certificate])).code).toBe(0);
    const { code, stderr } = await begin(certificate, key);
    expect(stderr).toMatch(/^qsp: [^\n]+\n$/);
    expect(stderr).not.toContain(unreachable);
    expect(code).toBe(2);
  });

  it.each([
    { what: "there is a certificate and no key", flags: ["--tls-cert", "a.crt"] },
    { what: "there is a key and no certificate", flags: ["--tls-key", "a.key"] },
    { what: "there are two certificates and one key", flags: ["--tls-cert", "a,b", "--tls-key", "a"] },
    { what: "there is one certificate and two keys", flags: ["--tls-cert", "a", "--tls-key", "a,b"] },
    { what: "there are commas and no files", flags: ["--tls-cert", ",", "--tls-key", ","] },
  ])("$what", async ({ flags }) => {
    const { code, stdout, stderr } = await startToEnd(["--data-dir", dataDir, ...flags]);
    expect(stderr).toMatch(/^qsp: [^\n]+\n$/);
    expect(stderr).not.toContain(unreachable);
    expect([code, stdout]).toEqual([2, ""]);
  });

  const begin = (certificate: string, key: string) =>
    startToEnd(["--data-dir", dataDir, "--tls-cert", certificate, "--tls-key", key]);
});

describe("the secret key of a certificate", { timeout }, () => {
  it("is never logged, at any level", async () => {
    const server = await startTlsServer(onTestFinished, "--log-level", "trace");
    await shownBy(server);
    await exchangeBytes(server.port, "nonsense\r\n\r\n");
    await issue(server.dataDir);
    const log = readLog(server);
    await vi.waitUntil(() => log.lines().some(({ msg }) => /certificates/.test(msg)), { timeout: 100_000 });
    const { stdout, stderr } = await server.stop();
    expect(stderr).not.toBe("");
    for (const name of ["gateway", "gateway-mldsa", "ca"])
      expectNoSecret(stdout + stderr, readFileSync(tlsFile(server.dataDir, `${name}.key`), "utf8"));
  });
});

function optionsOf1({ port, ca }: TlsPlace) {
  return { baseUrl: `https://127.0.0.1:${port}`, httpVersion: "1.1" as const, nodeOptions: { ca } };
}

/** The status of a small request on its own connection. */
async function livez(place: TlsPlace): Promise<number> {
  return (await requestHttp1(place, "/livez")).status;
}

/** Watches a pair with a fake clock, and counts renewals and warnings. */
async function watched() {
  const dataDir = await makeCertificates();
  const watch = { applied: 0, levels: [] as string[] };
  const note = (chunk: string) => watch.levels.push(pino.levels.labels[JSON.parse(chunk).level] ?? "?");
  const apply = () => {
    watch.applied += 1;
  };
  const stop = watchTls([pairOf(dataDir)], apply, pino({ base: null }, { write: note }));
  onTestFinished(stop);
  return { dataDir, watch, stop };
}

describe("a certificate about to expire", () => {
  /** What the log contains about a certificate at a time before or after its expiry. */
  async function linesAt(daysBefore: number): Promise<unknown[]> {
    const dataDir = await makeCertificates();
    const { certificate, key } = pairOf(dataDir);
    const end = new X509Certificate(readFileSync(certificate)).validToDate;
    vi.useFakeTimers({ now: end.getTime() - daysBefore * 86_400_000 });
    onTestFinished(() => void vi.useRealTimers());
    const lines: { level: number; file: string; msg: string }[] = [];
    const logger = pino({}, { write: (line) => void lines.push(JSON.parse(line)) });
    const stop = watchTls([{ certificate, key }], () => {}, logger);
    vi.advanceTimersByTime(86_400_000);
    stop();
    return lines.map(({ level, file, msg }) => [level, file === certificate, msg]);
  }
  const soon = [40, true, "the certificate expires soon; renew it"];
  const expired = [40, true, "the certificate has expired and clients reject it; renew it"];

  it.each([
    { daysBefore: 30, lines: [] },
    { daysBefore: 14.5, lines: [soon] },
    { daysBefore: 0.5, lines: [soon, expired] },
    { daysBefore: -1, lines: [expired, expired] },
  ])(
    "causes these log lines in a day that begins $daysBefore days before it expires",
    { timeout },
    async ({ daysBefore, lines }) => {
      expect(await linesAt(daysBefore)).toEqual(lines);
    },
  );
});

/** Starts a server that must fail before it opens its port, which is unavailable. */
function startToEnd(args: readonly string[]): Promise<Run> {
  return runToEndHere(["serve", "--host", unreachable, "--danger-open-to-network", ...args]);
}
