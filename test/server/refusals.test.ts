/**
 * Every refusal in every protocol over both HTTP versions: where its status is, and that it is sent once, has
 * an ID, is counted and logged once, and leaves the connection usable for the next call.
 */
import { Code } from "@connectrpc/connect";
import { beforeAll, describe, expect, it } from "vitest";
import { Access } from "#gen/qsp/access_pb.ts";
import { refuse } from "../../src/errors.ts";
import type { ServerLimits } from "../../src/server/limits.ts";
import { createMetrics, type Metrics } from "../../src/server/metrics.ts";
import { type AtEnd, endAfterAll } from "../support/at-end.ts";
import { always, crash, hang, refuseText } from "./failing.ts";
import { connectFramed, type FramedAnswer } from "./frames.ts";
import { ada, type ProbeBehaviour, profilesWith, serveProbe } from "./probe.ts";
import {
  connectTcp,
  endRefusalOf,
  envelope,
  grpcStatusOf,
  jsonRefusalOf,
  type RawAnswer,
  readEnvelopes,
} from "./raw.ts";
import { type BareOptions, collectLines } from "./serve.ts";

type Version = "HTTP/1.1" | "HTTP/2";

/** A protocol, with a successful request of its own. */
interface Form {
  readonly name: string;
  /** How a refusal is written. */
  readonly protocol: "grpc" | "grpc-web" | "connect" | "connect-stream" | "rest" | "page";
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly type?: string;
  readonly isStream?: boolean;
}

const ask = "/probing.Probe/Ask";
const watch = "/probing.Probe/Watch";
const look = "/probing.Probe/Look?connect=v1&encoding=json&message=";

const rpc = (name: string, protocol: Form["protocol"], path: string, type: string): Form => {
  return { name, protocol, method: "POST", path, type, isStream: path !== ask };
};
const forms: readonly Form[] = [
  rpc("gRPC", "grpc", ask, "application/grpc+proto"),
  rpc("gRPC with JSON", "grpc", ask, "application/grpc+json"),
  rpc("a stream of gRPC", "grpc", watch, "application/grpc+proto"),
  rpc("a stream of a gRPC client", "grpc", "/probing.Probe/Collect", "application/grpc+proto"),
  rpc("a conversation over gRPC", "grpc", "/probing.Probe/Chat", "application/grpc+proto"),
  rpc("gRPC-Web", "grpc-web", ask, "application/grpc-web+proto"),
  rpc("gRPC-Web as text", "grpc-web", ask, "application/grpc-web-text+proto"),
  rpc("a stream of gRPC-Web", "grpc-web", watch, "application/grpc-web+proto"),
  rpc("Connect", "connect", ask, "application/proto"),
  rpc("Connect with JSON", "connect", ask, "application/json"),
  { name: "Connect by GET", protocol: "connect", method: "GET", path: look },
  rpc("a stream of Connect", "connect-stream", watch, "application/connect+json"),
  { name: "REST", protocol: "rest", method: "POST", path: "/probe/ask", type: "application/json" },
  { name: "a stream of REST", protocol: "rest", method: "GET", path: "/probe/watch", isStream: true },
  { name: "a page", protocol: "page", method: "GET", path: "/livez" },
];

const isGrpc = ({ protocol }: Form): boolean => protocol.startsWith("grpc");
const isFramed = (form: Form): boolean => isGrpc(form) || form.protocol === "connect-stream";
const isJson = ({ type = "json" }: Form): boolean => type.endsWith("json");
const isNotJson = (form: Form): boolean => !isJson(form);
const hasBody = ({ method }: Form): boolean => method === "POST";
const isCall = ({ protocol }: Form): boolean => protocol !== "page";
const isUnary = (form: Form): boolean => isCall(form) && form.isStream !== true;
const isRest = ({ protocol }: Form): boolean => protocol === "rest";
const isRpc = (form: Form): boolean => isCall(form) && !isRest(form);
const isNotRpc = (form: Form): boolean => !isRpc(form);

/** Whether the answer has an HTTP status. */
const isOneOfHttp = ({ protocol }: Form): boolean => protocol === "connect" || protocol === "rest";

/** A request, which a row of the table changes. */
interface Sent {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: Buffer | undefined;
  /** Bytes of the body that are sent before the answer. Default: all. */
  readonly sentBytes?: number;
  /** Whether the rest is never sent. */
  readonly isHeld?: boolean;
}

/** What counts a refusal, if anything does. */
type Counted = "call" | "request" | "nothing";

/** A row of the table. */
interface Row {
  /** The HTTP status, if the protocol leaves it to the reason. */
  readonly refusal: readonly [reason: string, code: Code, status: number];
  readonly limits?: Partial<ServerLimits>;
  readonly behaviour?: ProbeBehaviour;
  /** Whether only admins may call. */
  readonly isGuarded?: boolean;
  /** Changes a request; undefined if this form cannot be refused in this way. */
  readonly change: (form: Form, version: Version) => Partial<Sent> | undefined;
  /** The form of the answer, if it differs from the request. */
  readonly as?: (form: Form) => Form["protocol"];
  /**
   * Whether it is refused before its call runs, at least in streams. gRPC-Web then has the status in its
   * headers.
   */
  readonly isEarly?: boolean | "streams";
  /** What counts it: most refusals outside calls are not counted. */
  readonly counted: Counted | ((form: Form, version: Version) => Counted);
  /** Whether the log has a line at debug level. Default: as for calls. */
  readonly isLogged?: (form: Form) => boolean;
  /** Additional headers of the answer. */
  readonly headers?: (form: Form) => Readonly<Record<string, unknown>>;
  /** Whether the connection ends with the answer. */
  readonly ends?: (version: Version) => boolean;
}

/** Encodes bytes in the form of a protocol. */
function pack(form: Form, message: Uint8Array | string, times = 1, flags = 0): Buffer {
  const one = isFramed(form) ? envelope(message, flags) : Buffer.from(message);
  const bytes = Buffer.concat(Array<Buffer>(times).fill(one));
  return form.type?.includes("-text") ? Buffer.from(bytes.toString("base64")) : bytes;
}

const empty = (form: Form): string => (isJson(form) ? "{}" : "");
/** A text of 2,000 bytes. */
const large = (form: Form): string | Buffer =>
  isJson(form)
    ? `{"text":"${"x".repeat(2000)}"}`
    : Buffer.concat([Buffer.of(0x0a, 0xd0, 0x0f), Buffer.alloc(2000)]);
/** A text, a number and bytes. */
const complex = (form: Form): string | Buffer =>
  isJson(form) ? '{"text":"a","number":"1","data":"AA=="}' : Buffer.of(0x0a, 1, 0x61, 0x10, 1, 0x1a, 1, 0);

type Change = Row["change"];
const all: Change = () => ({});
const only =
  (isRefused: (form: Form) => boolean, change: Change = all): Change =>
  (form, version) =>
    isRefused(form) ? change(form, version) : undefined;
const withHeaders =
  (headers: Sent["headers"]): Change =>
  () => ({ headers });
const withPath =
  (path: string): Change =>
  () => ({ path });
const withMessage = (
  message: string | Buffer | ((form: Form) => string | Buffer),
  times = 1,
  flags = 0,
): Change =>
  only(hasBody, (form) => {
    return { body: pack(form, typeof message === "function" ? message(form) : message, times, flags) };
  });
/** Sends a part of a large message. */
const withPart = (sentBytes: number, isHeld = false): Change =>
  only(hasBody, (form) => ({ body: pack(form, large(form)), sentBytes, isHeld }));
const inEncoding = (form: Form, encoding: string): Sent["headers"] => {
  if (isGrpc(form)) return { "grpc-encoding": encoding };
  return { [`${form.protocol === "connect-stream" ? "connect-" : ""}content-encoding`]: encoding };
};
const withTimeout = (grpc: string, connect: string): Change =>
  only(isCall, (form) => {
    return { headers: isGrpc(form) ? { "grpc-timeout": grpc } : { "connect-timeout-ms": connect } };
  });
const belongsOne = (form: Form): boolean => isFramed(form) && /Ask|Watch/.test(form.path);
const isHttp1 = (version: Version): boolean => version === "HTTP/1.1";
const fail = (act: () => never | Promise<never>): ProbeBehaviour => ({ ...always(act), look: act });
/** Bytes that cannot be parsed as a message. */
const unwritable = { data: 5 as unknown as Uint8Array<ArrayBuffer> };

type Refused = Row["refusal"];
const invalid = (reason: string, status = 400): Refused => [reason, Code.InvalidArgument, status];
const exhausted = (reason: string, status = 429): Refused => [reason, Code.ResourceExhausted, status];
const denied = (reason: string): Refused => [reason, Code.PermissionDenied, 403];
const unimplemented = (reason: string, status = 501): Refused => [reason, Code.Unimplemented, status];
const rpcNotFound = unimplemented("RPC_NOT_FOUND", 404);
const routeNotFound: Refused = ["ROUTE_NOT_FOUND", Code.NotFound, 404];
const noToken: Refused = ["TOKEN_MISSING", Code.Unauthenticated, 401];
const noEncoding: Refused = ["ENCODING_MISSING", Code.Internal, 500];
const wrongType = invalid("MEDIA_TYPE_UNSUPPORTED", 415);
const malformed = invalid("MESSAGE_MALFORMED");
const tooLarge = exhausted("BODY_TOO_LARGE", 413);
const tooSlow: Refused = ["REQUEST_TOO_SLOW", Code.DeadlineExceeded, 408];
const exceeded: Refused = ["DEADLINE_EXCEEDED", Code.DeadlineExceeded, 504];
const fault: Refused = ["INTERNAL", Code.Internal, 500];

type Others = Omit<Partial<Row>, "refusal" | "change">;
/** Refuses a request for its head, before the server looks for a call. */
const ofHead = (refusal: Refused, change: Change, others: Others = {}): Row => {
  return { refusal, change, isEarly: true, counted: "request", ...others };
};
/** Refuses a request for which there is no call. */
const ofNoCall = (refusal: Refused, change: Change, others: Others = {}): Row => {
  return { refusal, change, counted: "nothing", ...others };
};
const ofCall = (refusal: Refused, change: Change, others: Others = {}): Row => {
  return { refusal, change, counted: "call", ...others };
};
const early = { isEarly: true } as const;
const inRest = { as: (): "rest" => "rest" };
const small = { limits: { maxMessageBytes: 1000 } };
const later: Others = {
  ...early,
  headers: ({ protocol }) =>
    protocol === "connect-stream" ? {} : { "retry-after": expect.stringMatching(/^[1-9]\d*$/) },
};
const guarded = (challenge: string): Others => ({
  ...early,
  isGuarded: true,
  headers: (form) => (isOneOfHttp(form) ? { "www-authenticate": challenge } : {}),
});

const rows: Readonly<Record<string, Row>> = {
  "a host that is not allowed": ofHead(denied("HOST_NOT_ALLOWED"), withHeaders({ host: "a.example" })),
  "a page of another site": ofHead(
    denied("CROSS_SITE_REFUSED"),
    withHeaders({ origin: "https://a.example" }),
  ),
  "metadata above the limit": ofHead(
    exhausted("METADATA_TOO_LARGE", 431),
    withHeaders({ "x-large": "x".repeat(20_000) }),
  ),
  "a header sent twice": ofHead(invalid("HTTP_INVALID"), withHeaders({ "idempotency-key": ["1", "2"] })),
  "a body without a type": ofHead(
    wrongType,
    only(hasBody, () => ({ headers: { "content-type": undefined }, body: Buffer.from("x") })),
    { as: (form) => (isRest(form) ? "rest" : "connect") },
  ),
  "an RPC that does not exist": ofNoCall(
    rpcNotFound,
    only(isRpc, ({ path }) => ({ path: path.replace(/(Ask|Look|Watch|Collect|Chat)/, "Nothing") })),
    early,
  ),
  "a service that does not exist": ofNoCall(
    rpcNotFound,
    only(isGrpc, withPath("/probing.Nobody/Ask")),
    early,
  ),
  "a path that is not UTF-8": ofNoCall(
    invalid("TARGET_INVALID"),
    only(isNotRpc, withPath("/probe/%ff")),
    inRest,
  ),
  "a path that does not exist": ofNoCall(routeNotFound, only(isNotRpc, withPath("/nothing")), inRest),
  "a method that nobody registered": {
    // Over HTTP/1.1, Node's parser refuses the bytes.
    ...ofHead(unimplemented("METHOD_UNKNOWN"), () => ({ method: "BREW" }), inRest),
    counted: (_form, version) => (isHttp1(version) ? "request" : "nothing"),
    ends: isHttp1,
  },
  "a method that the path does not take": ofNoCall(
    unimplemented("METHOD_NOT_ALLOWED", 405),
    () => ({ method: "DELETE", headers: { "content-type": undefined }, body: undefined }),
    inRest,
  ),
  "a type that no protocol has": ofNoCall(
    wrongType,
    only(hasBody, withHeaders({ "content-type": "image/jpeg" })),
    { ...inRest, counted: (form) => (isRest(form) ? "call" : "nothing") },
  ),
  "gRPC over HTTP/1.1": ofNoCall(
    invalid("HTTP_INVALID"),
    (form, version) => (form.protocol === "grpc" && isHttp1(version) ? {} : undefined),
    inRest,
  ),
  "no room for calls": ofCall(
    exhausted("SERVER_BUSY"),
    // Even while the request is open.
    (form, version) => (hasBody(form) ? withPart(1)(form, version) : only(isCall)(form, version)),
    // There may be thousands a second.
    { ...later, limits: { maxCalls: 0, maxStreams: 0 }, isLogged: ({ isStream = false }) => isStream },
  ),
  "a call above the rate": ofCall(exhausted("RATE_LIMITED"), only(isCall), {
    ...later,
    limits: { maxCallsPerSecond: 0.001 },
  }),
  "no token": ofCall(noToken, only(isCall), guarded("Bearer")),
  // RFC 6750, section 3.
  "a role that may not call": ofCall(
    denied("ROLE_MISSING"),
    only(isCall, withHeaders({ authorization: "ada" })),
    guarded('Bearer error="insufficient_scope"'),
  ),
  "a timeout that is no time": ofCall(invalid("TIMEOUT_INVALID"), withTimeout("soon", "soon"), {
    isEarly: "streams",
  }),
  "another version of Connect": ofCall(
    invalid("HTTP_INVALID"),
    only(
      ({ protocol }) => protocol.startsWith("connect"),
      ({ path }) => ({ path: path.replace("v1", "v2"), headers: { "connect-protocol-version": "2" } }),
    ),
  ),
  "an unknown parameter": ofCall(
    invalid("PARAMETER_UNKNOWN"),
    only(isRest, ({ path }) => ({ path: `${path}?none=1` })),
  ),
  "an unknown form of answer": ofCall(
    invalid("NOT_ACCEPTABLE", 406),
    only(isRest, withHeaders({ accept: "text/html" })),
  ),
  "an unknown compression": ofCall(
    unimplemented("ENCODING_UNSUPPORTED", 415),
    only(hasBody, (form) => ({ headers: inEncoding(form, "snappy") })),
    {
      isEarly: "streams",
      headers: (form): Record<string, string> => (isGrpc(form) ? { "grpc-accept-encoding": "gzip,br" } : {}),
    },
  ),
  "a compressed message without an encoding": ofCall(noEncoding, only(isFramed, withMessage(empty, 1, 1))),
  "bytes that are not compressed as announced": ofCall(
    invalid("ENCODING_INVALID"),
    only(hasBody, (form) => ({ headers: inEncoding(form, "gzip"), body: pack(form, "no gzip", 1, 1) })),
  ),
  "flags that mean nothing": ofCall(malformed, only(isGrpc, withMessage(empty, 1, 0x02))),
  "a message above the limit": ofCall(tooLarge, withMessage(large), small),
  "a message above the limit that is only announced": ofCall(
    tooLarge,
    only((form) => form.protocol === "grpc" || (form.isStream === true && isFramed(form)), withPart(5)),
    small,
  ),
  "a request that ends within a message": ofCall(
    invalid("BODY_INCOMPLETE"),
    only(isFramed, (form) => ({ body: pack(form, "{}").subarray(0, 6) })),
  ),
  "bytes that are no message": ofCall(malformed, only(isNotJson, withMessage(Buffer.of(0x0a, 5, 0x61)))),
  "a text that is no JSON": ofCall(invalid("JSON_INVALID"), only(isJson, withMessage("{"))),
  "a field that is not valid": ofCall(
    invalid("FIELD_INVALID"),
    only(
      (form) => isCall(form) && isJson(form),
      (form) => {
        if (hasBody(form)) return { body: pack(form, '{"number":"x"}') };
        return { path: isRest(form) ? `${form.path}?number=x` : `${look}{"number":"x"}` };
      },
    ),
  ),
  "several messages where one belongs": ofCall(
    unimplemented("NOT_IMPLEMENTED"),
    only(belongsOne, withMessage(empty, 2)),
  ),
  "no message where one belongs": ofCall(
    unimplemented("NOT_IMPLEMENTED"),
    only(belongsOne, withMessage(empty, 0)),
  ),
  "a message of too many parts": ofCall(invalid("MESSAGE_TOO_COMPLEX"), withMessage(complex), {
    limits: { maxMessageElements: 2 },
  }),
  "a request that does not arrive in time": ofCall(tooSlow, only(isUnary, withPart(6, true)), {
    limits: { maxReceiveMs: 50 },
    ends: isHttp1,
  }),
  "a deadline that passes": ofCall(exceeded, withTimeout("20m", "20"), { behaviour: fail(hang) }),
  "a handler that refuses": ofCall(invalid("KEY_INVALID"), only(isCall), { behaviour: fail(refuseText) }),
  "a handler that breaks": ofCall(fault, only(isCall), { behaviour: fail(crash) }),
  // The handler has succeeded. The log has the fault.
  "an answer that cannot be written": ofNoCall(fault, only(isUnary), {
    behaviour: { ask: () => unwritable, look: () => unwritable },
    isLogged: () => true,
  }),
};

/** Creates a server for a row, and records what it counts and logs. */
async function serveRow({ limits, behaviour, isGuarded = false }: Row, atEnd: AtEnd) {
  const { lines, logger } = collectLines();
  const metrics = createMetrics();
  const options: Partial<BareOptions> = {
    logger,
    metrics,
    isHostAllowed: (host) => host === "127.0.0.1",
    ...(isGuarded && {
      profiles: profilesWith(Access.ADMIN),
      access: {
        mode: "token",
        authenticate: async (authorization) => {
          if (authorization === null) throw refuse("TOKEN_MISSING", "there is no token");
          return ada;
        },
      },
    }),
  };
  const { port } = await serveProbe(behaviour, limits, { ...options, atEnd });
  return { port, metrics, lines };
}

function expectedOf(row: Row, form: Form) {
  const [reason, code, httpStatus] = row.refusal;
  const { type = "" } = form;
  const protocol = row.as?.(form) ?? form.protocol;
  const snake = (Code[code] ?? "").replace(/(?<=[a-z])(?=[A-Z])/g, "_");
  const [lower, upper] = [snake.toLowerCase(), snake.toUpperCase()];
  const isEarly = row.isEarly === "streams" ? form.isStream : row.isEarly;
  const framed = { reason, type, status: 200, cacheControl: undefined };
  const uncached = { reason, status: httpStatus, where: "body", cacheControl: "no-store" };
  switch (protocol) {
    case "grpc":
      return { ...framed, where: "headers", code: String(code) };
    case "grpc-web":
      return { ...framed, where: isEarly ? "headers" : "trailer frame", code: String(code) };
    case "connect-stream":
      return { ...framed, where: "end of stream", code: lower };
    case "connect":
      return { ...uncached, type: "application/json", code: lower };
    default:
      return {
        ...uncached,
        type: expect.stringMatching(/^application\/json(; charset=utf-8)?$/),
        code: upper,
      };
  }
}

/** The request ID, in the headers or next to the status. */
function idOf(answer: RawAnswer): string | undefined {
  const { headers, trailers } = answer;
  const id = headers["x-request-id"] ?? trailers["x-request-id"];
  if (typeof id === "string") return id;
  return /x-request-id(?:: |":\[")([^\r"]*)/.exec(bodyOf(answer).toString("latin1"))?.[1];
}

/** The bytes of a body, which may be text. */
function bodyOf({ headers, body }: RawAnswer): Buffer {
  return /-text/.test(String(headers["content-type"])) ? Buffer.from(body.toString(), "base64") : body;
}

function refusalOf(answer: RawAnswer) {
  const { status, headers } = answer;
  const type = String(headers["content-type"]);
  const common = { status, type, cacheControl: headers["cache-control"] };
  if (type.startsWith("application/grpc")) {
    const { status: code, reason } = grpcStatusOf({ ...answer, body: bodyOf(answer) });
    const inHeaders = headers["grpc-status"] === undefined ? undefined : "headers";
    const inTrailers = answer.trailers["grpc-status"] === undefined ? "trailer frame" : "trailers";
    return { ...common, where: inHeaders ?? inTrailers, code: String(code), reason };
  }
  if (type.startsWith("application/connect")) {
    expect(readEnvelopes(answer.body)).toMatchObject([{ flags: 2 }]);
    return { ...common, where: "end of stream", ...endRefusalOf(answer) };
  }
  return { ...common, where: "body", ...jsonRefusalOf(answer.body) };
}

/** A connection that sends requests one after the other. */
interface Connection {
  send(sent: Sent): Promise<RawAnswer & Partial<FramedAnswer>>;
  /** Whether the server has ended it. */
  hasEnded(): Promise<boolean>;
  /** Expects that nothing arrived except the answers. */
  expectNoMore(): void;
}

function connectOver2(port: number): Connection {
  const { session, read, frames } = connectFramed(port);
  let answers = 0;
  return {
    async send({ method, path, headers, body = Buffer.alloc(0), sentBytes, isHeld = false }) {
      const { host = `127.0.0.1:${port}`, ...others } = headers;
      // Streams would wait for a body that is announced but not sent, and it needs no length.
      const hasLength = body.length > 0 && sentBytes === undefined;
      const length = hasLength ? { "content-length": String(body.length) } : {};
      const stream = session.request(
        {
          ":method": method,
          ":path": path,
          ":authority": String(host),
          ...length,
          ...(others as Record<string, string | string[]>),
        },
        { endStream: body.length === 0 },
      );
      if (sentBytes !== undefined) stream.write(body.subarray(0, sentBytes));
      else if (body.length > 0) stream.end(body);
      const answer = await read(stream);
      answers += 1;
      if (sentBytes !== undefined && !isHeld) stream.end(body.subarray(sentBytes));
      return answer;
    },
    hasEnded: async () => session.destroyed,
    expectNoMore: () => expect(frames.filter(({ endStream }) => endStream)).toHaveLength(answers),
  };
}

function connectOver1(port: number): Connection {
  const socket = connectTcp(port);
  const chunks: AsyncIterator<Buffer> = socket[Symbol.asyncIterator]();
  let received = "";
  /** Reads until the end of what is wanted has arrived. */
  const take = async (findEnd: () => number): Promise<string> => {
    for (;;) {
      const end = findEnd();
      if (end >= 0 && end <= received.length) {
        const taken = received.slice(0, end);
        received = received.slice(end);
        return taken;
      }
      const { done, value } = await chunks.next();
      if (done) throw new Error(`the connection ended after ${JSON.stringify(received)}`);
      received += value.toString("latin1");
    }
  };
  const takeLines = (end: string): Promise<string> =>
    take(() => (received.includes(end) ? received.indexOf(end) + end.length : -1));
  const readBody = async (headers: Readonly<Record<string, string>>): Promise<string> => {
    if (headers["transfer-encoding"] === undefined) return take(() => Number(headers["content-length"]));
    let body = "";
    for (;;) {
      const size = Number.parseInt(await takeLines("\r\n"), 16);
      body += (await take(() => size + 2)).slice(0, -2);
      if (size === 0) return body;
    }
  };
  return {
    async send({ method, path, headers, body = Buffer.alloc(0), sentBytes, isHeld = false }) {
      const length = body.length > 0 ? { "content-length": String(body.length) } : {};
      const lines = Object.entries({ host: `127.0.0.1:${port}`, ...length, ...headers }).flatMap(
        ([name, value]) => [value ?? []].flat().map((one) => `${name}: ${one}\r\n`),
      );
      socket.write(`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`);
      socket.write(body.subarray(0, sentBytes));
      const head = await takeLines("\r\n\r\n");
      const pairs = [...head.matchAll(/^([^:\r\n]+): (.*)\r$/gm)];
      const fields = Object.fromEntries(
        pairs.map(([, name = "", value = ""]) => [name.toLowerCase(), value]),
      );
      const content = Buffer.from(await readBody(fields), "latin1");
      if (sentBytes !== undefined && !isHeld) socket.write(body.subarray(sentBytes));
      return { status: Number(head.split(" ")[1]), headers: fields, trailers: {}, body: content };
    },
    hasEnded: async () => (await chunks.next().catch(() => ({ done: true }))).done === true,
    expectNoMore: () => expect([received, socket.readableLength]).toEqual(["", 0]),
  };
}

const versions: readonly Version[] = ["HTTP/1.1", "HTTP/2"];

/** Every request that a row refuses. */
function listCells(row: Row) {
  return versions.flatMap((version) =>
    forms.flatMap((form) => {
      const change = row.change(form, version);
      if (change === undefined) return [];
      if (form.protocol === "grpc" && isHttp1(version) && row !== rows["gRPC over HTTP/1.1"]) return [];
      return [{ name: form.name, version, form, sent: change }];
    }),
  );
}

function complete(form: Form, change: Partial<Sent>, id: string | undefined): Sent {
  const { method, path, type } = form;
  const body = hasBody(form) ? pack(form, empty(form)) : undefined;
  const own = {
    ...(type && { "content-type": type }),
    ...(form.protocol === "connect" && hasBody(form) && { "connect-protocol-version": "1" }),
    ...(id && { "x-request-id": id }),
    ...change.headers,
  };
  const headers = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined));
  return {
    method,
    path: form.protocol === "connect" && !hasBody(form) ? `${path}{}` : path,
    body,
    ...change,
    headers,
  };
}

const page: Sent = { method: "GET", path: "/livez", headers: {}, body: undefined };
const made = /^[0-9a-f]{12}-[0-9a-z]+$/;

/** How often a reason was counted. */
async function countOf(metrics: Metrics, reason: string) {
  const { text } = await metrics.expose();
  const sum = (name: string): number =>
    text
      .split("\n")
      .filter((line) => line.startsWith(`${name}{`) && line.includes(`reason="${reason}"`))
      .reduce((total, line) => total + Number(line.split(" ").at(-1)), 0);
  return { call: sum("qsp_call_failures_total"), request: sum("qsp_requests_refused_total") };
}

describe.each(Object.entries(rows))("%s", (_what, row) => {
  const atEnd = endAfterAll();
  let local: Awaited<ReturnType<typeof serveRow>>;
  /** After the cells so far: rendering the metrics takes longer than a refusal. */
  let before = { call: 0, request: 0 };
  beforeAll(async () => {
    local = await serveRow(row, atEnd);
  });

  it.each(listCells(row))("is refused in $name over $version", async ({ form, version, sent }) => {
    const { port, metrics, lines } = local;
    const [reason] = row.refusal;
    const counted = typeof row.counted === "function" ? row.counted(form, version) : row.counted;
    const connect = version === "HTTP/2" ? connectOver2 : connectOver1;
    const connection = connect(port);
    const first = await connection.send(complete(form, sent, undefined));
    expect(refusalOf(first)).toEqual(expectedOf(row, form));
    expect(idOf(first)).toMatch(made);
    // HEADERS with END_STREAM alone: grpc-go, grpc-java and grpcio report their own error for an empty DATA
    // frame.
    if (form.protocol === "grpc" && version === "HTTP/2" && row.as === undefined)
      expect(first.frames).toMatchObject([{ type: "HEADERS", endStream: true }]);
    expect({ ...first.headers, ...first.trailers }).toMatchObject(row.headers?.(form) ?? {});
    if (row.ends?.(version)) {
      expect(await connection.hasEnded()).toBe(true);
    } else {
      expect((await connection.send(page)).status).toBe(200);
      const id = `mine-${lines.length}`;
      const second = await connection.send(complete(form, sent, id));
      expect(refusalOf(second)).toEqual(expectedOf(row, form));
      expect(idOf(second)).toBe(id);
      const logged = lines.filter(({ requestId, method }) => requestId === id && method !== undefined);
      expect(logged).toHaveLength((row.isLogged?.(form) ?? counted === "call") ? 1 : 0);
    }
    connection.expectNoMore();
    const times = row.ends?.(version) ? 1 : 2;
    const after = await countOf(metrics, reason);
    const expected = {
      call: before.call + (counted === "call" ? times : 0),
      request: before.request + (counted === "request" ? times : 0),
    };
    before = after;
    expect(after).toEqual(expected);
  });
});
