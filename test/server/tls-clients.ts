/** Servers that speak TLS with what `qsp ca issue` made, and clients that trust nothing but its CA. */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import http2 from "node:http2";
import https from "node:https";
import net, { type AddressInfo } from "node:net";
import { join } from "node:path";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { onTestFinished } from "vitest";
import type { TlsFiles } from "../../src/server/tls.ts";
import { qsp } from "../cli/operator/authority.ts";
import { type RunningServer, startServer } from "../interop/start-server.ts";
import { makeTemporaryDirectory } from "../temporary-directory.ts";
import type { RawAnswer } from "./raw.ts";

export type AtEnd = (end: () => void | Promise<void>) => void;

/** Where somebody serves, and what to trust there. */
export interface TlsPlace {
  readonly port: number;
  /** Both CAs: clients that take ML-DSA prefer it. */
  readonly ca: string;
}

/** The real program with TLS. */
export interface TlsServer extends RunningServer, TlsPlace {
  readonly dataDir: string;
}

/** A data directory with a CA, and with certificates for localhost and 127.0.0.1 of both kinds. */
export async function makeCertificates(atEnd: AtEnd = onTestFinished): Promise<string> {
  const dataDir = join(makeTemporaryDirectory(atEnd), "data");
  await qsp(dataDir, "ca", "init");
  await issue(dataDir);
  return dataDir;
}

/** Makes, or renews, the certificates. */
export async function issue(dataDir: string): Promise<void> {
  await qsp(dataDir, "ca", "issue", "localhost", "127.0.0.1");
}

/** A file that `qsp ca` makes. */
export const tlsFile = (dataDir: string, file: string): string => join(dataDir, "tls", file);

/** The pair of a name: "gateway" or "gateway-mldsa". */
export function pairOf(dataDir: string, name = "gateway"): TlsFiles {
  return { certificate: tlsFile(dataDir, `${name}.crt`), key: tlsFile(dataDir, `${name}.key`) };
}

/** Both CAs of a data directory, in PEM. */
export function trustIn(dataDir: string): string {
  return ["ca.crt", "ca-mldsa.crt"].map((file) => readFileSync(tlsFile(dataDir, file), "utf8")).join("");
}

/** Flags that name pairs. */
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

/** Makes a connection, which closes with the test. @throws the alert of the other side */
export async function shakeHands(
  { port, ca }: TlsPlace,
  options: ConnectionOptions = {},
): Promise<TLSSocket> {
  const socket = connect({ host: "127.0.0.1", port, ca, servername: "localhost", ...options });
  onTestFinished(() => void socket.destroy());
  await once(socket, "secureConnect");
  // A server that goes away may reset it.
  socket.on("error", () => {});
  return socket;
}

/** An HTTP/2 connection, which closes with the test. */
export async function connectSession(
  { port, ca }: TlsPlace,
  options: ConnectionOptions = {},
): Promise<http2.ClientHttp2Session> {
  const session = http2.connect(`https://127.0.0.1:${port}`, { ca, ...options });
  session.on("error", () => {}); // Every stream on it fails, and is told so.
  onTestFinished(() => session.destroy());
  await once(session, "remoteSettings");
  return session;
}

/** Sends one request over HTTP/1.1, on a connection of its own. */
export async function requestHttp1(
  { port, ca }: TlsPlace,
  path: string,
  { body, ...options }: https.RequestOptions & { ALPNProtocols?: string[]; body?: string | Uint8Array } = {},
): Promise<RawAnswer> {
  const req = https.request({ host: "127.0.0.1", port, ca, path, agent: false, ...options });
  req.end(body);
  const [res] = await once(req, "response");
  const chunks: Buffer[] = await Array.fromAsync(res);
  const { statusCode: status, headers, trailers } = res;
  return { status, headers, trailers, body: Buffer.concat(chunks) };
}

/** The first thing that a client of TLS sends. */
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
