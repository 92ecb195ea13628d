import http2 from "node:http2";
import net from "node:net";
import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ExchangeKeysRequestSchema, VerifySignatureRequestSchema } from "#gen/pqc/pqc_service_pb.ts";
import { VerifyTokenRequestSchema } from "#gen/pqc/token_service_pb.ts";
import { type RunningServer, startServer } from "../support/start-server.ts";
import { makeTemporaryDirectory } from "../support/temporary-directory.ts";
import { exchange, expectNothingHeld } from "./fuzz-server.ts";
import { createRandom, mutate, type Random } from "./mutations.ts";

/** Requests of each kind; QSP_TEST_MUTATIONS=33334 makes 100,000 in total. */
const requestsOfAKind = Number(process.env.QSP_TEST_MUTATIONS ?? 300);
const seed = Number(process.env.QSP_TEST_SEED ?? 20261121);
const timeoutMs = 180_000 + requestsOfAKind * 60;

/** Acceptable statuses of an answer: anything except a server error. */
interface Answer {
  readonly status: number;
  readonly grpcStatus: string | undefined;
  readonly grpcMessage: string;
  readonly body: string;
}

/** A valid request, before it is mutated. */
interface Template {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: Uint8Array;
}

const verification = create(VerifySignatureRequestSchema, {
  data: Buffer.from("hello"),
  signature: Buffer.alloc(2420, 7),
  publicKey: Buffer.alloc(1312, 3),
  algorithm: "ML-DSA-44",
});
const keyExchange = create(ExchangeKeysRequestSchema, { algorithm: "ML-KEM-512" });
const tokenCheck = create(VerifyTokenRequestSchema, { token: "eyJhbGciOiJNTC1EU0EtNjUifQ.e30.AAAA" });

function enveloped(message: Uint8Array): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

const json = { "content-type": "application/json" };
const templates: readonly Template[] = [
  { method: "GET", path: "/api/hello", headers: {}, body: Buffer.alloc(0) },
  {
    method: "GET",
    path: "/api/grpc/algorithms?category=KEM",
    headers: { accept: "application/json" },
    body: Buffer.alloc(0),
  },
  {
    method: "GET",
    path: "/api/secure",
    headers: { authorization: "Bearer abc.def.ghi" },
    body: Buffer.alloc(0),
  },
  {
    method: "POST",
    path: "/api/grpc/verify",
    headers: json,
    body: Buffer.from(toJsonString(VerifySignatureRequestSchema, verification)),
  },
  {
    method: "POST",
    path: "/api/grpc/key-exchange",
    headers: { ...json, "grpc-timeout": "5S" },
    body: Buffer.from(toJsonString(ExchangeKeysRequestSchema, keyExchange)),
  },
  {
    method: "POST",
    path: "/api/auth/verify",
    headers: json,
    body: Buffer.from(toJsonString(VerifyTokenRequestSchema, tokenCheck)),
  },
  {
    method: "POST",
    path: "/pqc.PqcService/ExchangeKeys",
    headers: { ...json, "connect-timeout-ms": "5000" },
    body: Buffer.from(toJsonString(ExchangeKeysRequestSchema, keyExchange)),
  },
  {
    method: "POST",
    path: "/pqc.PqcService/VerifySignature",
    headers: { "content-type": "application/proto" },
    body: toBinary(VerifySignatureRequestSchema, verification),
  },
  {
    method: "GET",
    path: "/pqc.PqcService/GetAlgorithmInfo?connect=v1&encoding=json&message=%7B%7D",
    headers: {},
    body: Buffer.alloc(0),
  },
  {
    method: "POST",
    path: "/pqc.PqcService/ExchangeKeys",
    headers: { "content-type": "application/grpc-web+proto" },
    body: enveloped(toBinary(ExchangeKeysRequestSchema, keyExchange)),
  },
  {
    method: "POST",
    path: "/pqc.PqcService/ExchangeKeys",
    headers: { "content-type": "application/grpc", te: "trailers", "grpc-timeout": "5S" },
    body: enveloped(toBinary(ExchangeKeysRequestSchema, keyExchange)),
  },
  {
    method: "POST",
    path: "/pqc.TokenService/VerifyToken",
    headers: { "content-type": "application/grpc+proto", te: "trailers" },
    body: enveloped(toBinary(VerifyTokenRequestSchema, tokenCheck)),
  },
  // Server reflection: a bidirectional stream.
  {
    method: "POST",
    path: "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    headers: { "content-type": "application/grpc", te: "trailers" },
    body: enveloped(Buffer.from([0x3a, 1, 0x2a])),
  },
];

let server: RunningServer;
const directory = makeTemporaryDirectory(afterAll);

beforeAll(async () => {
  // Damaged frames leave connections on which nothing more is read.
  const limits = ["--max-call-ms", "10000", "--max-write-ms", "5000"];
  server = await startServer({ dataDir: directory, args: limits });
});
afterAll(async () => {
  const { stderr } = await server.stop();
  // Server errors are logged; refusals are not.
  const faults = stderr.split("\n").filter((line) => /"level":[56]0/.test(line));
  expect(faults.slice(0, 5)).toEqual([]);
});

/** Mutates one part of a request; header names and values remain such that a client can send them. */
function change(random: Random, template: Template): Template {
  const printable = (text: Buffer): string => text.toString("latin1").replace(/[^\x21-\x7e]/g, "?");
  switch (random.below(4)) {
    case 0:
      return { ...template, path: `/${printable(mutate(random, Buffer.from(template.path.slice(1))))}` };
    case 1: {
      const name = random.pick([
        // An HTTP/2 client may only send "te: trailers".
        ...Object.keys(template.headers).filter((key) => key !== "te"),
        "accept",
        "content-encoding",
        "grpc-encoding",
        "if-none-match",
        "traceparent",
      ]);
      const value = printable(mutate(random, Buffer.from(template.headers[name] ?? "gzip")));
      return { ...template, headers: { ...template.headers, [name]: value } };
    }
    default:
      return { ...template, body: template.method === "GET" ? template.body : mutate(random, template.body) };
  }
}

function send(session: http2.ClientHttp2Session, { method, path, headers, body }: Template): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const stream = session.request(
      { ":method": method, ":path": path, ...headers },
      { endStream: body.length === 0 },
    );
    let status = 0;
    let grpcStatus: string | undefined;
    let grpcMessage = "";
    const chunks: Buffer[] = [];
    const note = (received: http2.IncomingHttpHeaders): void => {
      grpcStatus = received["grpc-status"]?.toString() ?? grpcStatus;
      grpcMessage = decodeURIComponent(received["grpc-message"]?.toString() ?? grpcMessage);
    };
    stream.on("response", (received) => {
      status = Number(received[":status"]);
      note(received);
    });
    stream.on("trailers", note);
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("error", reject);
    stream.on("close", () =>
      resolve({ status, grpcStatus, grpcMessage, body: Buffer.concat(chunks).toString() }),
    );
    if (body.length > 0) stream.end(body);
  });
}

/** Returns what is wrong with an answer; undefined if nothing is. */
function findFault({ status, grpcStatus, grpcMessage, body }: Answer): string | undefined {
  if (status === 0) return "no answer";
  if (status >= 500 && status !== 501 && status !== 504) return `HTTP ${status}: ${body}`;
  // gRPC requires INTERNAL for a compressed message without an encoding; the error is the caller's.
  if (grpcMessage.includes("marked as compressed")) return undefined;
  // 2 is UNKNOWN, 13 INTERNAL, 15 DATA_LOSS.
  if (["2", "13", "15"].includes(grpcStatus ?? "")) return `grpc-status ${grpcStatus}`;
  return undefined;
}

/** Sends bytes over a new connection, and reads until the server closes it or stays silent. */
function sendRaw(port: number, bytes: Uint8Array): Promise<string> {
  return new Promise((resolve) => {
    const socket = net.connect(port, "127.0.0.1");
    let received = "";
    const done = (): void => {
      socket.destroy();
      resolve(received);
    };
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
    });
    socket.on("error", done);
    socket.on("close", done);
    // Our side closes after the request, so a server that waits for more of it notices the end.
    socket.end(bytes);
  });
}

async function inParallel(
  count: number,
  workers: number,
  task: (index: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  const work = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) await task(index);
  };
  await Promise.all(Array.from({ length: workers }, work));
}

async function expectAlive(): Promise<void> {
  const { body } = await exchange(`${server.url}/api/grpc/health`, { ca: undefined });
  expect(JSON.parse(body)).toMatchObject({ status: "success", serviceStatus: "UP" });
}

describe(`${requestsOfAKind * 3} mutated requests, seed ${seed}`, () => {
  it("refuses calls with a mutated path, headers or body with one of our reasons", {
    timeout: timeoutMs,
  }, async () => {
    const random = createRandom(seed);
    const session = http2.connect(server.url);
    const faults: string[] = [];
    await inParallel(requestsOfAKind, 16, async () => {
      const request = change(random, random.pick(templates));
      const fault = findFault(await send(session, request));
      if (fault !== undefined)
        faults.push(`${request.method} ${request.path} ${JSON.stringify(request.headers)}: ${fault}`);
    });
    session.close();
    expect(faults).toEqual([]);
    await expectAlive();
  });

  it("never answers 500 to mutated HTTP/1.1 bytes", { timeout: timeoutMs }, async () => {
    const random = createRandom(seed + 1);
    const { port } = new URL(server.url);
    const faults: string[] = [];
    await inParallel(requestsOfAKind, 16, async () => {
      const { method, path, headers, body } = random.pick(templates);
      const lines = Object.entries({
        ...headers,
        host: "localhost",
        "content-length": body.length,
        connection: "close",
      });
      const head = `${method} ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
      const request = mutate(random, Buffer.concat([Buffer.from(head), body]));
      const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(await sendRaw(Number(port), request))?.[1] ?? 0);
      if (status === 500 || status === 502 || status === 503)
        faults.push(`${status}: ${request.toString("latin1").slice(0, 500)}`);
    });
    expect(faults).toEqual([]);
    await expectAlive();
  });

  it("limits the damage of mutated HTTP/2 frames to their connection", { timeout: timeoutMs }, async () => {
    const random = createRandom(seed + 2);
    const { port } = new URL(server.url);
    const bystander = http2.connect(server.url);
    const good: Template = { method: "GET", path: "/api/hello", headers: {}, body: Buffer.alloc(0) };
    const recorded = await recordFrames();
    await inParallel(requestsOfAKind, 16, async (index) => {
      await sendRaw(Number(port), mutate(random, random.pick(recorded)));
      if (index % 100 === 0) expect((await send(bystander, good)).status).toBe(200);
    });
    bystander.close();
    await expectAlive();
  });

  it("holds no call, bytes or connection afterwards", { timeout: timeoutMs }, async () => {
    await expectNothingHeld({ url: server.url, ca: undefined });
  });
});

/** The bytes of each template as an HTTP/2 client sends them, captured by a socket that answers nothing. */
async function recordFrames(): Promise<Buffer[]> {
  return Promise.all(
    templates.map(
      (template) =>
        new Promise<Buffer>((resolve, reject) => {
          const chunks: Buffer[] = [];
          const catcher = net.createServer((socket) => {
            socket.on("data", (chunk: Buffer) => {
              chunks.push(chunk);
              // Preface, settings, headers and body come in one or two chunks; a body ends with its last byte.
              if (Buffer.concat(chunks).length < 60 + template.body.length) return;
              socket.destroy();
              catcher.close();
              resolve(Buffer.concat(chunks));
            });
          });
          catcher.on("error", reject);
          catcher.listen(0, "127.0.0.1", () => {
            const address = catcher.address();
            const port = typeof address === "object" && address !== null ? address.port : 0;
            const session = http2.connect(`http://127.0.0.1:${port}`);
            session.on("error", () => {});
            send(session, template).catch(() => session.destroy());
          });
        }),
    ),
  );
}
