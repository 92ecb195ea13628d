/** TLS servers with certificates from `qsp ca issue`, and clients that trust only its CA. */
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type http2 from "node:http2";
import net, { type AddressInfo } from "node:net";
import { join } from "node:path";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { type Client, Code } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { expect, onTestFinished } from "vitest";
import type { KmsService } from "#gen/kms/kms_service_pb.ts";
import type { TlsFiles } from "../../src/server/tls.ts";
import { qsp } from "../cli/operator/authority.ts";
import type { AtEnd } from "../support/at-end.ts";
import { type RunningServer, startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { serveProbe } from "./probe.ts";
import { connectHttp2, type RawAnswer, requestHttp1 as requestHttp1Of } from "./raw.ts";
import type { BareOptions, LocalServer } from "./serve.ts";

/** The address of a server, and what to trust there. */
export interface TlsPlace {
  readonly port: number;
  /** Both CAs: clients that accept ML-DSA prefer it. */
  readonly ca: string;
}

/** The real program with TLS. */
export interface TlsServer extends RunningServer, TlsPlace {
  readonly dataDir: string;
}

/** A data directory with a CA, and with certificates of both kinds for localhost and 127.0.0.1. */
export async function makeCertificates(atEnd: AtEnd = onTestFinished): Promise<string> {
  const dataDir = join(makeTemporaryDirectory(atEnd), "data");
  await qsp(dataDir, "ca", "init");
  await issue(dataDir);
  return dataDir;
}

/** Creates or renews the certificates. */
export async function issue(dataDir: string): Promise<void> {
  await qsp(dataDir, "ca", "issue", "localhost", "127.0.0.1");
}

/** A file created by `qsp ca`. */
export const tlsFile = (dataDir: string, file: string): string => join(dataDir, "tls", file);

/** A certificate and key by name: "gateway" or "gateway-mldsa". */
export function pairOf(dataDir: string, name = "gateway"): TlsFiles {
  return { certificate: tlsFile(dataDir, `${name}.crt`), key: tlsFile(dataDir, `${name}.key`) };
}

/** Both CAs of a data directory, in PEM. */
export function trustIn(dataDir: string): string {
  return ["ca.crt", "ca-mldsa.crt"].map((file) => readFileSync(tlsFile(dataDir, file), "utf8")).join("");
}

/** Flags that name certificates and keys. */
export function tlsFlags(dataDir: string, ...names: string[]): string[] {
  const pairs = names.map((name) => pairOf(dataDir, name));
  const certificates = pairs.map(({ certificate }) => certificate).join();
  return ["--tls-cert", certificates, "--tls-key", pairs.map(({ key }) => key).join()];
}

/** Starts the program with both certificates. */
export async function startTlsServer(atEnd: AtEnd = onTestFinished, ...args: string[]): Promise<TlsServer> {
  const dataDir = await makeCertificates(atEnd);
  const server = await startServer({
    dataDir,
    args: [...tlsFlags(dataDir, "gateway", "gateway-mldsa"), ...args],
  });
  atEnd(async () => void (await server.stop("SIGKILL")));
  return { ...server, dataDir, ca: trustIn(dataDir), port: Number(new URL(server.url).port) };
}

/** Serves with a certificate from `qsp ca issue`: probing.Probe, unless the options say otherwise. */
export async function serveTls(
  options: Partial<BareOptions> = {},
  atEnd: AtEnd = onTestFinished,
): Promise<LocalServer & TlsPlace> {
  const dataDir = await makeCertificates(atEnd);
  const server = await serveProbe({}, {}, { tls: [pairOf(dataDir)], ...options, atEnd });
  return { ...server, ca: trustIn(dataDir) };
}

/**
 * Opens a connection, which closes with the test.
 *
 * @throws the other side's alert
 */
export async function shakeHands(
  { port, ca }: TlsPlace,
  options: ConnectionOptions = {},
): Promise<TLSSocket> {
  const socket = connect({ host: "127.0.0.1", port, ca, servername: "localhost", ...options });
  onTestFinished(() => void socket.destroy());
  await once(socket, "secureConnect");
  // A disconnecting server may reset it.
  socket.on("error", () => {});
  return socket;
}

/** An HTTP/2 connection, which closes with the test. */
export async function connectSession(
  { port, ca }: TlsPlace,
  options: ConnectionOptions = {},
): Promise<http2.ClientHttp2Session> {
  const session = connectHttp2(`https://127.0.0.1:${port}`, { ca, ...options });
  await once(session, "remoteSettings");
  return session;
}

/** Sends one HTTP/1.1 request on its own connection. */
export const requestHttp1 = (
  { port, ca }: TlsPlace,
  path: string,
  options: Parameters<typeof requestHttp1Of>[1] = {},
): Promise<RawAnswer> => requestHttp1Of(`https://127.0.0.1:${port}${path}`, { ca, ...options });

/** The first message of a TLS client. */
export async function captureClientHello(): Promise<Buffer> {
  const listener = net.createServer();
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const client = connect({ host: "127.0.0.1", port: (listener.address() as AddressInfo).port });
  client.on("error", () => {}); // Nobody answers it.
  const [socket]: net.Socket[] = await once(listener, "connection");
  const [hello]: Buffer[] = await once(socket as net.Socket, "data");
  client.destroy();
  socket?.destroy();
  listener.close();
  return hello as Buffer;
}

export const ecdsa = "ecdsa_secp256r1_sha256";

/** gRPC over a connection of its own, which closes with the test. */
export function openGrpc({ port, ca }: TlsPlace) {
  const baseUrl = `https://127.0.0.1:${port}`;
  const sessionManager = new Http2SessionManager(baseUrl, {}, { ca });
  onTestFinished(() => sessionManager.abort());
  return { transport: createGrpcTransport({ baseUrl, sessionManager }), sessionManager };
}

export function fingerprintOf(dataDir: string, name: string): string {
  return new X509Certificate(readFileSync(tlsFile(dataDir, `${name}.crt`))).fingerprint256;
}

/** The fingerprint of the certificate on a new connection. */
export async function shownBy(place: TlsPlace, { sigalgs = ecdsa } = {}): Promise<string | undefined> {
  const socket = await shakeHands(place, { sigalgs });
  const certificate = socket.getPeerX509Certificate();
  socket.destroy();
  return certificate?.fingerprint256;
}

/** @returns the key ID */
export async function createKey(kms: Client<typeof KmsService>): Promise<string> {
  const { result } = await kms.createKey({ algorithm: "ML-DSA-44" });
  if (result === undefined) throw new Error("no key was made");
  return result.keyId;
}

/** Watches the audit log on one stream until stopped. */
export function watchAudit(kms: Client<typeof KmsService>) {
  const controller = new AbortController();
  const entries = kms.watchAuditLog({}, { signal: controller.signal })[Symbol.asyncIterator]();
  const sees = async (keyId: string): Promise<void> => {
    for (;;) {
      const { done, value } = await entries.next();
      if (done === true) throw new Error(`the stream ended before ${keyId}`);
      if (value.entry?.keyId === keyId) return;
    }
  };
  const stop = async (): Promise<void> => {
    controller.abort();
    await expect(entries.next()).rejects.toMatchObject({ code: Code.Canceled });
  };
  return { sees, stop };
}
