/** Third-party clients, each behind the same interface. */
import {
  type DescMethod,
  fromBinary,
  fromJson,
  type JsonValue,
  type Message,
  toJson,
} from "@bufbuild/protobuf";
import { type CallOptions, Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { streamOf } from "../support/streams.ts";
import { type Call, findMethod, type Outcome, toJsonTexts } from "./calls.ts";
import { callGrpcJs, watchGrpcJs } from "./grpc-js.ts";
import { buf, follow, run } from "./tools.ts";

type Caller<Answer> = (request: unknown, options: CallOptions) => Answer;

/** Finds the call of a client, and builds its request. */
function prepare<Answer>(transport: Transport, { service, method, request, headers }: Call) {
  const desc = findMethod(`${service}.${method}`);
  const client = createClient(desc.parent, transport) as unknown as Record<string, Caller<Answer>>;
  const messages = [request].flat().map((message) => fromJson(desc.input, message as JsonValue));
  const isStream = ["client_streaming", "bidi_streaming"].includes(desc.methodKind);
  const sent = isStream ? streamOf(...messages) : messages[0];
  return {
    desc,
    call: (options: CallOptions) => (client[desc.localName] as Caller<Answer>)(sent, { headers, ...options }),
  };
}

/**
 * Makes a unary or client-streaming call, with requests and answer in JSON.
 *
 * @throws ConnectError
 */
export async function callConnect(transport: Transport, toMake: Call): Promise<unknown> {
  const { desc, call } = prepare<Promise<Message>>(transport, toMake);
  return toJsonAnswer(desc, await call({}));
}

/** Makes a server-streaming call, until the signal ends it or the caller stops reading. */
export async function* watchConnect(
  transport: Transport,
  toMake: Call,
  signal?: AbortSignal,
): AsyncGenerator<unknown> {
  const { desc, call } = prepare<AsyncIterable<Message>>(transport, toMake);
  const ending = new AbortController();
  const signals = [ending.signal, ...(signal ? [signal] : [])];
  try {
    for await (const message of call({ signal: AbortSignal.any(signals) })) yield toJsonAnswer(desc, message);
  } finally {
    ending.abort();
  }
}

function toJsonAnswer({ output }: DescMethod, message: Message): unknown {
  return toJson(output, message, { alwaysEmitImplicit: true });
}

/** A client. */
export interface Driver {
  readonly name: string;
  /** The program that it needs on the machine. */
  readonly program?: string;
  /** The streams that it can send. HTTP/1.1 has no bidirectional streams. */
  readonly sends: "no streams" | "streams" | "streams both ways";
  /** Whether only `test:full` calls the examples with it: it resembles another driver, or takes much longer. */
  readonly isVariant?: boolean;
  /** Makes a call with a single answer. */
  call(url: string, call: Call): Promise<Outcome>;
  /** Makes a server-streaming call and yields its messages as they arrive. Ends when the caller stops reading. */
  watch(url: string, call: Call, signal?: AbortSignal): AsyncGenerator<unknown>;
}

interface StatusDetail {
  readonly reason?: string;
  readonly type?: string;
}

function curl(name: string, flags: readonly string[]): Driver {
  const toArgs = (url: string, { http, service, method, headers }: Call): string[] => {
    if (http === undefined) throw new Error(`REST has no call for ${service}.${method}`);
    const bodyFlags = ["--header", "content-type: application/json", "--data-binary", "@-"];
    return [
      ...["--silent", "--request", http.method, ...flags, ...headerFlags("--header", headers)],
      ...(http.body === undefined ? [] : bodyFlags),
      url + http.target,
    ];
  };
  const toBody = ({ http }: Call): string => (http?.body === undefined ? "" : JSON.stringify(http.body));
  return {
    name,
    program: "curl",
    sends: "no streams",
    async call(url, call) {
      const ending = "\n%{http_code} %{content_type}";
      const { stdout } = await run("curl", ["--write-out", ending, ...toArgs(url, call)], toBody(call));
      const end = stdout.lastIndexOf("\n");
      const [status, contentType] = stdout.slice(end + 1).split(" ");
      const body = stdout.slice(0, end);
      // Notes and tiles are what gRPC has as google.api.HttpBody.
      if (contentType !== "application/json")
        return { answer: { contentType, data: Buffer.from(body).toString("base64"), extensions: [] } };
      const answer = JSON.parse(body);
      if (status === "200") return { answer };
      const reason = answer.details.find((detail: StatusDetail) => detail.reason)?.reason;
      return { refusal: { code: answer.code, reason } };
    },
    watch: (url, call, signal) => follow("curl", ["--no-buffer", ...toArgs(url, call)], toBody(call), signal),
  };
}

function headerFlags(flag: string, headers: Readonly<Record<string, string>>): string[] {
  return Object.entries(headers).flatMap(([name, value]) => [flag, `${name}: ${value}`]);
}

const grpcurl: Driver = {
  name: "grpcurl, given only the address",
  program: "grpcurl",
  sends: "streams both ways",
  async call(url, call) {
    const { code, stdout, stderr } = await run(
      "grpcurl",
      ["-format-error", ...toGrpcurlArgs(url, call)],
      toJsonTexts(call, toFieldMask),
    );
    if (code === 0) return { answer: JSON.parse(stdout) };
    const status = JSON.parse(stderr.slice(stderr.indexOf("{")));
    const reason = status.details.find((detail: StatusDetail) => detail.reason)?.reason;
    return { refusal: { code: nameOf(status.code), reason } };
  },
  watch: (url, call, signal) =>
    follow("grpcurl", toGrpcurlArgs(url, call), toJsonTexts(call, toFieldMask), signal),
};

/** grpcurl reads a field mask as a plain message, not in its ProtoJSON form. */
function toFieldMask(name: string, value: unknown): unknown {
  return name === "updateMask" ? { paths: String(value).split(",") } : value;
}

function toGrpcurlArgs(url: string, call: Call): string[] {
  return [
    ...["-plaintext", "-emit-defaults", "-d", "@", ...headerFlags("-H", call.headers)],
    ...[url.slice("http://".length), `${call.service}/${call.method}`],
  ];
}

function bufCurl(protocol: "grpc" | "grpcweb" | "connect"): Driver {
  const toArgs = (url: string, call: Call): string[] => [
    ...["curl", "--http2-prior-knowledge", "--emit-defaults", "--protocol", protocol, "--data", "@-"],
    ...headerFlags("--header", call.headers),
    `${url}/${call.service}/${call.method}`,
  ];
  return {
    name: `buf curl over ${protocol}, given only the address`,
    program: "buf",
    sends: "streams both ways",
    async call(url, call) {
      const { code, stdout, stderr } = await run(buf, toArgs(url, call), toJsonTexts(call));
      if (code === 0) return { answer: JSON.parse(stdout) };
      const error = JSON.parse(stderr.slice(stderr.indexOf("{")));
      const info = error.details.find((detail: StatusDetail) => detail.type === ErrorInfoSchema.typeName);
      const reason = info && fromBinary(ErrorInfoSchema, Buffer.from(info.value, "base64")).reason;
      return { refusal: { code: error.code.toUpperCase(), reason } };
    },
    watch: (url, call, signal) => follow(buf, toArgs(url, call), toJsonTexts(call), signal),
  };
}

/** Uses a new transport for each call, so that nothing stays open. */
function connectNode(
  name: string,
  sends: Driver["sends"],
  createTransport: (baseUrl: string) => Transport,
): Driver {
  return {
    name: `@connectrpc/connect-node, ${name}`,
    sends,
    async call(url, call) {
      try {
        return { answer: await callConnect(createTransport(url), call) };
      } catch (thrown) {
        const error = ConnectError.from(thrown);
        return {
          refusal: { code: nameOf(error.code), reason: error.findDetails(ErrorInfoSchema)[0]?.reason },
        };
      }
    },
    watch: (url, call, signal) => watchConnect(createTransport(url), call, signal),
  };
}

const grpcJs: Driver = {
  name: "@grpc/grpc-js, with reflection",
  sends: "streams",
  async call(url, call) {
    const outcome = await callGrpcJs(url.slice("http://".length), call);
    if ("answer" in outcome) return outcome;
    return { refusal: { code: nameOf(outcome.code), reason: outcome.reason } };
  },
  watch: (url, call, signal) => watchGrpcJs(url.slice("http://".length), call, signal),
};

/** Turns 3 into INVALID_ARGUMENT. */
export function nameOf(code: number): string {
  return (Code[code] ?? String(code)).replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();
}

const http1 = { httpVersion: "1.1" } as const;
const http2 = { httpVersion: "2" } as const;
const get = { useHttpGet: true };
const json = { useBinaryFormat: false };

const asVariant = (driver: Driver): Driver => ({ ...driver, isVariant: true });

/** npm clients, which call from the test process: one of each protocol and HTTP version, then their variants. */
export const npmDrivers: readonly Driver[] = [
  connectNode("Connect over HTTP/1.1", "streams", (baseUrl) => createConnectTransport({ baseUrl, ...http1 })),
  connectNode("Connect with GET and JSON over HTTP/2", "streams both ways", (baseUrl) =>
    createConnectTransport({ baseUrl, ...http2, ...get, ...json }),
  ),
  connectNode("gRPC", "streams both ways", (baseUrl) => createGrpcTransport({ baseUrl })),
  connectNode("gRPC-Web over HTTP/1.1", "streams", (baseUrl) =>
    createGrpcWebTransport({ baseUrl, ...http1 }),
  ),
  grpcJs,
  ...[
    connectNode("Connect with GET over HTTP/1.1", "streams", (baseUrl) =>
      createConnectTransport({ baseUrl, ...http1, ...get }),
    ),
    connectNode("Connect with JSON over HTTP/1.1", "streams", (baseUrl) =>
      createConnectTransport({ baseUrl, ...http1, ...json }),
    ),
    connectNode("Connect over HTTP/2", "streams both ways", (baseUrl) =>
      createConnectTransport({ baseUrl, ...http2 }),
    ),
    connectNode("gRPC with JSON", "streams both ways", (baseUrl) =>
      createGrpcTransport({ baseUrl, ...json }),
    ),
    connectNode("gRPC-Web over HTTP/2", "streams both ways", (baseUrl) =>
      createGrpcWebTransport({ baseUrl, ...http2 }),
    ),
    connectNode("gRPC-Web with JSON", "streams", (baseUrl) =>
      createGrpcWebTransport({ baseUrl, ...http1, ...json }),
    ),
  ].map(asVariant),
];

/** Clients that start a program for each call. */
export const otherDrivers: readonly Driver[] = [
  curl("curl over HTTP/1.1", ["--http1.1"]),
  grpcurl,
  ...[
    curl("curl over HTTP/2", ["--http2-prior-knowledge"]),
    bufCurl("connect"),
    bufCurl("grpcweb"),
    bufCurl("grpc"),
  ].map(asVariant),
];
