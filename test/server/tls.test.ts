/**
 * The server's own TLS: which client gets which group, protocol and certificate, and the effect of bad
 * clients and files.
 */
import { createPrivateKey, randomBytes, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { copyFileSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ConnectionOptions } from "node:tls";
import { createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { pino } from "pino";
import { afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { encodePem } from "../../src/crypto/pem.ts";
import { createAuthority, issueServerCertificate, openAuthority } from "../../src/crypto/x509.ts";
import { readTlsOptions, watchTls } from "../../src/server/tls.ts";
import { isMissing, run } from "../interop/tools.ts";
import { endAfterAll } from "../support/at-end.ts";
import { runToEndHere } from "../support/run-here.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { connectTcp, exchangeBytes, readToEnd, request } from "./raw.ts";
import { collectLines } from "./serve.ts";
import {
  captureClientHello,
  connectSession,
  createKey,
  ecdsa,
  fingerprintOf,
  issue,
  makeCertificates,
  openGrpc,
  pairOf,
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

/** Timeout in milliseconds for tests that start programs on busy machines. */
const timeout = 180_000;

/** The status of a small request on its own connection. */
const livez = async (place: TlsPlace): Promise<number> => (await requestHttp1(place, "/livez")).status;
const firstHalf = (bytes: Buffer): Buffer => bytes.subarray(0, bytes.length >> 1);
const begins: [what: string, begin: () => Promise<Buffer>][] = [
  ["sends nothing", async () => Buffer.alloc(0)],
  ["stops after half a ClientHello", async () => firstHalf(await captureClientHello())],
  ["stops after its ClientHello", captureClientHello],
];

/**
 * A complete SSL 2 CLIENT-HELLO: the server would only wait for the rest of a partial one. 46 bytes, version
 * 0.2, seven kinds of cipher, no session and a challenge of 16 bytes.
 */
const ssl2Hello = Buffer.concat([
  Buffer.from("802e010002001500000010010080", "hex"),
  Buffer.alloc(18 + 16, 2),
]);

describe("the program with --tls-cert and --tls-key", { timeout }, () => {
  const atEnd = endAfterAll();
  let server: TlsServer;
  beforeAll(async () => {
    server = await startTlsServer(atEnd);
  }, timeout);

  // connection.test.ts has other offers.
  it.each([
    ["the hybrid, X25519 and P-384", "X25519MLKEM768:X25519:P-384", "X25519MLKEM768"],
    ["X25519 first and the hybrid last", "X25519:X25519MLKEM768", "X25519MLKEM768"],
    ["P-384 first and the hybrid last", "P-384:X25519MLKEM768", "X25519MLKEM768"],
    ["the hybrid alone", "X25519MLKEM768", "X25519MLKEM768"],
    ["P-384 first and X25519 last", "P-384:X25519", "X25519"],
    ["P-256 alone, like gRPC for C++ before 1.83", "P-256", "prime256v1"],
  ])("agrees with a client that offers %s (%s) on %s", async (_what, ecdhCurve, name) => {
    const socket = await shakeHands(server, { ecdhCurve });
    expect(socket.getProtocol()).toBe("TLSv1.3");
    expect(socket.getEphemeralKeyInfo()).toMatchObject({ name });
  });

  it.each<[what: string, options: ConnectionOptions, code: string]>([
    ["a client that offers only P-521", { ecdhCurve: "P-521" }, "SSL/TLS_ALERT_HANDSHAKE_FAILURE"],
    ["a client that offers only ML-KEM-768", { ecdhCurve: "MLKEM768" }, "SSL/TLS_ALERT_HANDSHAKE_FAILURE"],
    ["TLS 1.2", { maxVersion: "TLSv1.2" }, "TLSV1_ALERT_PROTOCOL_VERSION"],
    ["an unsupported protocol", { ALPNProtocols: ["h3"] }, "TLSV1_ALERT_NO_APPLICATION_PROTOCOL"],
  ])("refuses %s", async (_what, options, alert) => {
    await expect(shakeHands(server, options)).rejects.toMatchObject({ code: `ERR_SSL_${alert}` });
  });

  it.each([
    [["h2", "http/1.1"], "h2"],
    [["http/1.1", "h2"], "h2"],
    [["h3", "http/1.0", "http/1.1"], "http/1.1"],
    [undefined, false],
  ])("chooses from the protocols %j: %s", async (ALPNProtocols, chosen) => {
    const socket = await shakeHands(server, ALPNProtocols && { ALPNProtocols });
    expect(socket.alpnProtocol).toBe(chosen);
  });

  it("closes the connection of a client that speaks HTTP/2 without having offered it", async () => {
    const socket = await shakeHands(server);
    socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    // RFC 9113, section 3.3, leaves no way to answer it in HTTP/2.
    expect(await readToEnd(socket)).not.toContain("200 OK");
  });

  it.each([
    ["ECDSA-P256", "gateway", "ca", ecdsa],
    ["ML-DSA-65", "gateway-mldsa", "ca-mldsa", "mldsa65"],
  ])("presents the %s certificate to a client that accepts no other", async (_, name, ca, sigalgs) => {
    const trusted = { ...server, ca: readFileSync(tlsFile(server.dataDir, `${ca}.crt`), "utf8") };
    expect(await shownBy(trusted, { sigalgs })).toBe(fingerprintOf(server.dataDir, name));
  });

  it.each<[name: string, make: (place: TlsPlace) => Transport]>([
    ["gRPC", (place) => openGrpc(place).transport],
    [
      "Connect over HTTP/1.1",
      ({ port, ca }) =>
        createConnectTransport({
          baseUrl: `https://127.0.0.1:${port}`,
          httpVersion: "1.1",
          nodeOptions: { ca },
        }),
    ],
  ])("answers calls, and sends stream messages without delay, over %s", async (_name, make) => {
    const kms = createClient(KmsService, make(server));
    const audit = watchAudit(kms);
    await audit.sees(await createKey(kms));
    await audit.stop();
  });

  it.each<[what: string, bytes: string | Buffer]>([
    ["a request of HTTP/1.1 in the clear", "GET / HTTP/1.1\r\nhost: x\r\n\r\n"],
    ["the preface of HTTP/2 in the clear", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    ["bytes at random", Buffer.concat([Buffer.of(0xff), randomBytes(2000)])],
    ["an empty ClientHello", Buffer.from("160301000401000000", "hex")],
    ["application data before the handshake", Buffer.from("17030300020000", "hex")],
    ["a hello of SSL 2", ssl2Hello],
  ])("closes the connection of a client that sends %s, and no other", async (_what, bytes) => {
    const bystander = await connectSession(server);
    const answer = Buffer.from(await exchangeBytes(server.port, bytes), "latin1");
    // RFC 8446, section 6: nothing, or an alert, which is a record of type 21.
    expect([undefined, 21]).toContain(answer.at(0));
    expect(answer.length).toBeLessThan(16);
    expect((await request(bystander, { ":path": "/livez" })).status).toBe(200);
    expect(await livez(server)).toBe(200);
  });
});

describe("a server with TLS and a header timeout", { timeout }, () => {
  it.each(begins)("closes the connection of a client that %s after the timeout", async (_what, begin) => {
    const { port } = await serveTls({ limits: { maxHeaderMs: 200 } });
    const begun = await begin();
    const startedMs = performance.now();
    const socket = connectTcp(port);
    socket.write(begun);
    await readToEnd(socket);
    expect(performance.now() - startedMs).toBeGreaterThan(190);
  });

  it("closes the connection of a client that completes the handshake and sends nothing after the timeout", async () => {
    // The handshake itself must complete before that, on a busy machine.
    const place = await serveTls({ limits: { maxHeaderMs: 5000 } });
    expect(await readToEnd(await shakeHands(place))).toBe("");
  });
});

describe("a stopping server with TLS", { timeout }, () => {
  const ways = ["closed", "destroyed"].flatMap((how) =>
    begins.map(([what, begin]) => [how, what, begin] as const),
  );
  it.each(ways)("if %s, does not wait for a client that %s", async (how, _what, begin) => {
    const limits = { maxHeaderMs: 2 * timeout, maxDrainMs: 2 * timeout };
    const { server, ...place } = await serveTls({ limits });
    const stalled = connectTcp(place.port);
    await once(stalled, "connect");
    stalled.write(await begin());
    // Connections are accepted in order: once this one is served, the server knows of the one before.
    expect(await livez(place)).toBe(200);
    const closed = readToEnd(stalled);
    if (how === "destroyed") server.destroy();
    await Promise.all([server.close(), closed]);
  });
});

describe("polling for renewed certificates", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** Watches a pair, and counts renewals and warnings. */
  async function startWatching() {
    const dataDir = await makeCertificates();
    const watch = { applied: 0, levels: [] as string[] };
    const write = (line: string) => watch.levels.push(pino.levels.labels[JSON.parse(line).level] ?? "?");
    const apply = () => {
      watch.applied += 1;
    };
    const stop = watchTls([pairOf(dataDir)], apply, pino({ base: null }, { write }));
    onTestFinished(stop);
    return { dataDir, watch, stop };
  }

  it("returns a new pair once, within a second, until it is stopped", async () => {
    const { dataDir, watch, stop } = await startWatching();
    vi.advanceTimersByTime(10_000);
    expect(watch).toEqual({ applied: 0, levels: [] });
    await issue(dataDir);
    vi.advanceTimersByTime(1000);
    expect(watch.applied).toBe(1);
    stop();
    await issue(dataDir);
    vi.advanceTimersByTime(10_000);
    expect(watch).toEqual({ applied: 1, levels: ["info"] });
  });

  it("warns once for each mismatch, and keeps the old pair", async () => {
    const { dataDir, watch } = await startWatching();
    copyFileSync(tlsFile(dataDir, "ca.crt"), tlsFile(dataDir, "gateway.crt"));
    vi.advanceTimersByTime(10_000);
    expect(watch).toEqual({ applied: 0, levels: ["warn"] });
    rmSync(tlsFile(dataDir, "gateway.key"));
    vi.advanceTimersByTime(10_000);
    // A link to itself: the system answers ELOOP, as it answers EACCES for a closed directory.
    rmSync(tlsFile(dataDir, "gateway.crt"));
    symlinkSync("gateway.crt", tlsFile(dataDir, "gateway.crt"));
    vi.advanceTimersByTime(10_000);
    expect(watch).toEqual({ applied: 0, levels: ["warn", "warn", "warn"] });
  });
});

describe("a start with TLS ends with code 2 and one sentence if", { timeout }, () => {
  const atEnd = endAfterAll();
  let dataDir: string;
  beforeAll(async () => {
    dataDir = await makeCertificates(atEnd);
  }, timeout);

  /** An address of another machine (RFC 5737): the server must fail before it opens its port. */
  const unreachable = "192.0.2.1";
  /** Returns the sentence. */
  async function failToStart(certificates: string, keys: string): Promise<string> {
    const flags = ["--data-dir", dataDir, "--host", unreachable, "--danger-open-to-network"];
    const files = [certificates && ["--tls-cert", certificates], keys && ["--tls-key", keys]].flat();
    const { code, stdout, stderr } = await runToEndHere(["serve", ...flags, ...files.filter(Boolean)]);
    const lines = stdout.split("\n").filter((line) => line !== "" && !line.startsWith("Created a new "));
    expect([code, lines]).toEqual([2, []]);
    expect(stderr).toMatch(/^qsp: [^\n]+\n$/);
    expect(stderr).not.toContain(unreachable);
    return stderr;
  }

  it("the key belongs to a different certificate, and names the file", async () => {
    const key = tlsFile(dataDir, "gateway-mldsa.key");
    const sentence = await failToStart(tlsFile(dataDir, "gateway.crt"), key);
    expect(sentence).toContain(key);
    expectNoSecret(sentence, readFileSync(tlsFile(dataDir, "gateway.key"), "utf8"));
  });

  const opensslOr = isMissing("openssl") ? "openssl, which is not installed," : "openssl";
  it.skipIf(isMissing("openssl"))(`the key of ${opensslOr} is too short to be safe`, async () => {
    const [certificate, key] = [join(dataDir, "short.crt"), join(dataDir, "short.key")];
    const made = ["req", "-x509", "-newkey", "rsa:1024", "-nodes", "-days", "2", "-subj", "/CN=localhost"];
    expect((await run("openssl", [...made, "-keyout", key, "-out", certificate])).code).toBe(0);
    await failToStart(certificate, key);
  });

  it.each([
    ["there is a certificate and no key", "a.crt", ""],
    ["there is a key and no certificate", "", "a.key"],
    ["there are two certificates and one key", "a,b", "a"],
    ["there is one certificate and two keys", "a", "a,b"],
    ["there are commas and no files", ",", ","],
  ])("%s", async (_what, certificates, keys) => {
    await failToStart(certificates, keys);
  });
});

it("a renewed certificate is used soon, without an end of a connection or stream, and no secret key is logged", {
  timeout,
}, async () => {
  const server = await startTlsServer(onTestFinished, "--log-level", "trace");
  let log = "";
  server.process.stderr?.on("data", (chunk) => {
    log += chunk;
  });
  const kms = createClient(KmsService, openGrpc(server).transport);
  const audit = watchAudit(kms);
  await audit.sees(await createKey(kms));
  const old = await shakeHands(server);
  await exchangeBytes(server.port, "nonsense\r\n\r\n");
  await issue(server.dataDir);
  await vi.waitUntil(() => /"msg":"[^"]*certificates/.test(log), { timeout: 100_000 });
  expect(await shownBy(server)).toBe(fingerprintOf(server.dataDir, "gateway"));
  expect(await shownBy(server, { sigalgs: "mldsa65" })).toBe(fingerprintOf(server.dataDir, "gateway-mldsa"));
  await audit.sees(await createKey(kms));
  await audit.stop();
  old.write("GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n");
  expect(String((await once(old, "data"))[0])).toMatch(/^HTTP\/1\.1 200 /);
  const { stdout, stderr } = await server.stop();
  expect(stderr).not.toBe("");
  for (const name of ["gateway", "gateway-mldsa", "ca"])
    expectNoSecret(stdout + stderr, readFileSync(tlsFile(server.dataDir, `${name}.key`), "utf8"));
});

/** Fails if a text contains a key, as PEM or in any other common encoding. */
function expectNoSecret(text: string, pem: string): void {
  const [, body = ""] = /-----BEGIN[^-]*-----\s*([^-]*)-----END/.exec(pem) ?? [];
  const raw = Buffer.from(body, "base64");
  expect(raw.length).toBeGreaterThan(32);
  const end = raw.subarray(-32);
  const encoded = [
    raw.toString("hex"),
    end.toString("hex"),
    end.toString("base64url"),
    end.subarray(-8).join(","),
  ];
  expect([...body.trim().split("\n"), ...encoded].filter((form) => text.includes(form))).toEqual([]);
}

describe("a certificate about to expire", () => {
  const soon = "the certificate expires soon; renew it";
  const expired = "the certificate has expired and clients reject it; renew it";

  it.each([
    [30, []],
    [14.5, [soon]],
    [0.5, [soon, expired]],
    [-1, [expired, expired]],
  ])("is logged in a day that begins %d days before: %j", { timeout }, async (daysBefore, messages) => {
    const pair = pairOf(await makeCertificates());
    const end = new X509Certificate(readFileSync(pair.certificate)).validToDate;
    vi.useFakeTimers({ now: end.getTime() - daysBefore * 86_400_000 });
    onTestFinished(() => void vi.useRealTimers());
    const { lines, logger } = collectLines();
    const stop = watchTls([pair], () => {}, logger);
    vi.advanceTimersByTime(86_400_000);
    stop();
    const expected = messages.map((msg) => ({ level: 40, file: pair.certificate, msg }));
    expect(lines.map(({ level, file, msg }) => ({ level, file, msg }))).toEqual(expected);
  });
});

const now = new Date();
const authority = openAuthority(createAuthority("ECDSA-P256", now));
const issuePair = () => issueServerCertificate(authority, { names: ["localhost"], days: 2, now });
const pair = issuePair();
const another = issuePair();
const rest = authority.certificate.toString();
const der = (pem: string): Uint8Array => new X509Certificate(pem).raw;
const junk = encodePem("CERTIFICATE", Uint8Array.of(1, 2, 3));
const secretKey = createPrivateKey(pair.secretKeyPem);
const exportKey = (type: "pkcs8" | "sec1", passphrase?: string): string =>
  String(
    secretKey.export({
      type,
      format: "pem",
      ...(passphrase !== undefined && { cipher: "aes-256-cbc", passphrase }),
    }),
  );
const parameters = encodePem("EC PARAMETERS", Buffer.from("06082a8648ce3d030107", "hex"));
const indent = (pem: string): string => pem.replace("-----BEGIN", " -----BEGIN");
const utf16 = (pem: string): Buffer => Buffer.from(`\uFEFF${pem}`, "utf16le");

/**
 * Reads a pair from files.
 *
 * @param input replaces the contents of the files
 */
function read(input: { certificate?: string | Uint8Array; key?: string | Uint8Array }) {
  const directory = makeTemporaryDirectory();
  const files = { certificate: join(directory, "server.crt"), key: join(directory, "server.key") };
  writeFileSync(files.certificate, input.certificate ?? pair.certificatePem);
  writeFileSync(files.key, input.key ?? pair.secretKeyPem);
  return readTlsOptions([files]);
}

describe("the files of --tls-cert and --tls-key", () => {
  const { certificatePem: certificate, secretKeyPem: key } = pair;

  it.each<[what: string, input: Parameters<typeof read>[0]]>([
    ["text before and after it", { certificate: `Subject: CN=x\n\n${certificate}end\n` }],
    ["spaces at the end of its lines", { certificate: certificate.replaceAll("\n", " \n") }],
    ["CRLF line endings", { certificate: certificate.replaceAll("\n", "\r\n") }],
    ["a byte order mark", { certificate: `\uFEFF${certificate}` }],
    ["the label used by older programs", { certificate: encodePem("X509 CERTIFICATE", der(certificate)) }],
    ["its key in the same file", { certificate: key + certificate }],
    ["a key with CRLF line endings", { key: key.replaceAll("\n", "\r\n") }],
    ["a key in the older SEC1 form", { key: exportKey("sec1") }],
    ["a key after its parameters, as written by openssl ecparam", { key: parameters + exportKey("sec1") }],
    ["a key next to its certificate", { key: key + certificate }],
  ])("are accepted with %s", (_, input) => {
    const options = read(input);
    expect(options.cert.map((pem) => der(String(pem)))).toEqual([der(certificate)]);
    expect(options.key).toHaveLength(1);
  });

  it("yield the whole chain in its order", () => {
    const { cert } = read({ certificate: certificate + rest });
    expect(String(cert[0]).match(/BEGIN/g)).toHaveLength(2);
    expect(der(String(cert[0]))).toEqual(der(certificate));
  });

  const longer = encodePem("CERTIFICATE", Buffer.concat([der(certificate), Buffer.of(0)]));
  // Followed by another certificate, which OpenSSL would use.
  it.each<[what: string, certificate: string | Uint8Array, message: RegExp]>([
    ["an indented BEGIN line", indent(another.certificatePem) + certificate, /crt: line 1 is not a whole/],
    ["an indented BEGIN line in its chain", certificate + indent(rest), /crt: line \d+ is not a whole/],
    ["four dashes", another.certificatePem.slice(1) + certificate, /crt: line 1 is not a whole/],
    [
      "a non-certificate block before it",
      junk + certificate,
      /crt: .* line 1 is not an X\.509 certificate; export/,
    ],
    [
      "a non-certificate block in its chain",
      certificate + junk,
      /crt: .* line \d+ is not an X\.509 certificate/,
    ],
    ["bytes after it", longer, /crt: .* line 1 is not an X\.509 certificate/],
    [
      "trust settings",
      encodePem("TRUSTED CERTIFICATE", der(certificate)),
      /crt: .*openssl x509 -in FILE -out/,
    ],
    ["UTF-16", utf16(certificate), /crt: .*UTF-16; save it as UTF-8/],
    ["DER", der(certificate), /crt: no certificate in PEM.*openssl x509 -in FILE -out NEW/],
    ["a key instead", key, /crt: 1 PEM block \(PRIVATE KEY in line 1\), and no certificate/],
    ["no bytes", "", /crt: no certificate in PEM/],
    ["no PEM", "this is no PEM\n", /crt: no certificate in PEM/],
  ])("are refused with a certificate that has %s", (_, certificate, message) => {
    expect(() => read({ certificate })).toThrow(message);
  });

  const broken = key.replace(/\n[^\n]{8}/, "\n!!!!!!!!");
  it.each<[what: string, key: string | Uint8Array, message: RegExp]>([
    ["that is a certificate", certificate, /key: 1 PEM block \(CERTIFICATE in line 1\), and no private key/],
    ["with an indented BEGIN line", indent(another.secretKeyPem) + key, /key: line 1 is not a whole/],
    [
      "next to another",
      key + another.secretKeyPem,
      /key: 2 PEM blocks \(PRIVATE KEY in line 1, PRIVATE KEY in/,
    ],
    ["in UTF-16", utf16(key), /key: .*UTF-16; save it as UTF-8/],
    ["that is encrypted", exportKey("pkcs8", "passphrase"), /key: .*is encrypted; decrypt it first/],
    [
      "that is encrypted in the older form",
      exportKey("sec1", "passphrase"),
      /key: .*is encrypted; decrypt it first/,
    ],
    ["that is not PEM", "this is no PEM\n", /key: /],
    ["that is broken", broken, /key: the PRIVATE KEY in line 1 is not valid base64/],
    [
      "that is none",
      encodePem("PRIVATE KEY", Uint8Array.of(1)),
      /key: .*is not a private key that OpenSSL can read/,
    ],
    [
      "of OpenSSH",
      encodePem("OPENSSH PRIVATE KEY", Uint8Array.of(1)),
      /key: the OPENSSH .* line 1 .*openssl pkey/,
    ],
    ["of another certificate", another.secretKeyPem, /key does not contain the key of .*server\.crt/],
  ])("are refused with a key %s", (_, key, message) => {
    expect(() => read({ key })).toThrow(message);
  });

  it.each(["certificate", "key"] as const)("are refused if the %s is missing or a directory", (which) => {
    const directory = makeTemporaryDirectory();
    const good = join(directory, "good.pem");
    writeFileSync(good, key + certificate);
    for (const bad of [join(directory, "nowhere"), directory])
      expect(() => readTlsOptions([{ certificate: good, key: good, [which]: bad }])).toThrow(bad);
  });
});
