/** Handwritten requests that no client would send. */
import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import https from "node:https";
import net from "node:net";
import { fromBinary } from "@bufbuild/protobuf";
import { onTestFinished } from "vitest";
import { ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "#gen/google/rpc/status_pb.ts";

/** A complete answer. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly trailers: Readonly<Record<string, unknown>>;
  readonly body: Buffer;
}

/** An HTTP/2 connection, which closes with the test. */
export function connectHttp2(
  url: string,
  options: http2.SecureClientSessionOptions = {},
): http2.ClientHttp2Session {
  // Node's own send limit, 64 KiB, is lower than what the tests send.
  const session = http2.connect(url, { maxSendHeaderBlockLength: 1024 * 1024, ...options });
  session.on("error", () => {}); // Every stream on it fails and emits the error.
  onTestFinished(() => session.destroy());
  return session;
}

/** Sends a request on a connection and reads the answer; rejects if the stream is reset. */
export function request(
  session: http2.ClientHttp2Session,
  headers: http2.OutgoingHttpHeaders,
  body?: Uint8Array | string,
): Promise<RawAnswer> {
  const head = { ":method": body === undefined ? "GET" : "POST", ...headers };
  const stream = session.request(head, { endStream: body === undefined });
  stream.end(body);
  return readStream(stream);
}

/** Reads an answer to its end. */
export function readStream(stream: http2.ClientHttp2Stream): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let headers: http2.IncomingHttpHeaders & http2.IncomingHttpStatusHeader = {};
    let trailers: http2.IncomingHttpHeaders = {};
    stream.on("response", (received) => {
      headers = received;
    });
    stream.on("trailers", (received) => {
      trailers = received;
    });
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("error", reject);
    stream.on("close", () => reject(new Error(`closed without an answer (${stream.rstCode})`)));
    // Not at "close": a server may answer long before it has read the request.
    stream.on("end", () => {
      const { ":status": status } = headers;
      if (status !== undefined) resolve({ status, headers, trailers, body: Buffer.concat(chunks) });
    });
  });
}

/** Sends one HTTP/1.1 request on its own connection and reads the answer. */
export async function requestHttp1(
  url: string,
  { body, ...options }: https.RequestOptions & { ALPNProtocols?: string[]; body?: string | Uint8Array } = {},
): Promise<RawAnswer> {
  const send = url.startsWith("https:") ? https.request : http.request;
  const sent = send(url, { agent: false, ...options });
  sent.end(body);
  const [received] = await once(sent, "response");
  const chunks: Buffer[] = await Array.fromAsync(received);
  const { statusCode: status, headers, trailers } = received;
  return { status, headers, trailers, body: Buffer.concat(chunks) };
}

/** A request that is sent in the same way over HTTP/1.1 and HTTP/2. */
export interface SameRequest {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

/** A server; plaintext without a CA. */
export interface ServerPlace {
  readonly port: number;
  readonly ca?: string | undefined;
}

const urlOf = ({ port, ca }: ServerPlace): string =>
  `${ca === undefined ? "http" : "https"}://127.0.0.1:${port}`;

function askHttp1(place: ServerPlace, { path, ...sent }: SameRequest): Promise<RawAnswer> {
  const tls = place.ca === undefined ? {} : { ca: place.ca, servername: "localhost" };
  return requestHttp1(`${urlOf(place)}${path}`, { ...sent, ...tls });
}

function askHttp2(
  place: ServerPlace,
  { method = "GET", path, headers, body }: SameRequest,
): Promise<RawAnswer> {
  const session = connectHttp2(urlOf(place), place.ca === undefined ? {} : { ca: place.ca });
  return request(session, { ":method": method, ":path": path, ...headers }, body);
}

/** Both HTTP versions; each request has its own connection. */
export const versions = [
  { over: "HTTP/1.1", ask: askHttp1 },
  { over: "HTTP/2", ask: askHttp2 },
] as const;

/** Puts flags and length before a message, as in gRPC. */
export function envelope(message: Uint8Array | string, flags = 0): Buffer {
  const bytes = Buffer.from(message);
  const prefix = Buffer.alloc(5);
  prefix.writeUInt8(flags, 0);
  prefix.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
}

/** The envelopes of a body: one byte of flags, four bytes of length, the message. */
export function readEnvelopes(body: Buffer): { readonly flags: number; readonly message: Buffer }[] {
  const envelopes: { flags: number; message: Buffer }[] = [];
  for (let at = 0; at < body.length; ) {
    const end = at + 5 + body.readUInt32BE(at + 1);
    envelopes.push({ flags: body.readUInt8(at), message: body.subarray(at + 5, end) });
    at = end;
  }
  return envelopes;
}

/** The refusal in the message that ends a Connect stream. */
export function endRefusalOf({ body }: Pick<RawAnswer, "body">): ReturnType<typeof jsonRefusalOf> {
  const end = readEnvelopes(body).find(({ flags }) => (flags & 0x02) !== 0);
  return jsonRefusalOf(JSON.stringify(JSON.parse(String(end?.message)).error));
}

/** The gRPC status of an answer: from its trailers or, without a message, from its headers. */
export function grpcStatusOf(answer: RawAnswer): { status: number; reason: string | undefined } {
  const all: Record<string, unknown> = { ...answer.headers, ...answer.trailers, ...readWebTrailers(answer) };
  const details = String(all["grpc-status-details-bin"] ?? "");
  const any = fromBinary(StatusSchema, Buffer.from(details, "base64")).details.find(({ typeUrl }) =>
    typeUrl.endsWith("/google.rpc.ErrorInfo"),
  );
  return {
    status: Number(all["grpc-status"]),
    reason: any && fromBinary(ErrorInfoSchema, any.value).reason,
  };
}

/** gRPC-Web has its trailers in the body, after the messages. */
function readWebTrailers({ headers, body }: RawAnswer): Record<string, string> {
  if (!String(headers["content-type"]).startsWith("application/grpc-web")) return {};
  const trailers = readEnvelopes(body).find(({ flags }) => (flags & 0x80) !== 0)?.message ?? "";
  const fields = trailers.toString().matchAll(/^([^:\r\n]+): *([^\r\n]*)/gm);
  return Object.fromEntries([...fields].map(([, name = "", value = ""]) => [name.toLowerCase(), value]));
}

/** The refusal in the JSON of a REST or Connect answer. */
export function jsonRefusalOf(body: Uint8Array | string): { code: string; reason: string | undefined } {
  const { code, details = [] } = JSON.parse(Buffer.from(body).toString());
  for (const detail of details) {
    if (detail.reason !== undefined) return { code, reason: detail.reason };
    if (detail.type === ErrorInfoSchema.typeName) {
      return { code, reason: fromBinary(ErrorInfoSchema, Buffer.from(detail.value, "base64")).reason };
    }
  }
  return { code, reason: undefined };
}

/**
 * Opens a TCP connection, which closes with the test.
 *
 * @param allowHalfOpen whether it stays open for sending after the server has closed its half
 */
export function connectTcp(port: number, allowHalfOpen = false, localAddress = "127.0.0.1"): net.Socket {
  const socket = net.connect({ port, host: "127.0.0.1", allowHalfOpen, localAddress, noDelay: true });
  socket.on("error", () => {}); // The other side may reset it; the reader sees the end.
  onTestFinished(() => void socket.destroy());
  return socket;
}

/** Sends bytes and reads everything until the server ends the connection. */
export async function exchangeBytes(port: number, bytes: Uint8Array | string): Promise<string> {
  const socket = connectTcp(port);
  socket.write(bytes);
  return readToEnd(socket);
}

/** Reads until the connection ends, in whatever way. */
export function readToEnd(socket: net.Socket): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
    });
    socket.on("close", () => resolve(text));
  });
}
