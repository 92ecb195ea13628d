/** Clients that the project did not write, each behind one interface. */
import { fromBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { type Call, headersOf, type Outcome, toJsonTexts, toRest } from "./calls.ts";
import { callConnect, watchConnect } from "./connect-node.ts";
import { callGrpcJs, watchGrpcJs } from "./grpc-js.ts";
import { buf, follow, run } from "./tools.ts";

/** A client. */
export interface Driver {
  readonly name: string;
  /** The program that it needs on the machine. */
  readonly program?: string;
  /** Whether it can make calls that send a stream. */
  readonly sendsStreams: boolean;
  /** Makes a call that has one answer. */
  call(url: string, call: Call, token?: string): Promise<Outcome>;
  /** Makes a call that is answered with a stream, and gives its messages as they come, until the signal ends it. */
  watch(url: string, call: Call, signal?: AbortSignal): AsyncGenerator<unknown>;
}

interface StatusDetail {
  readonly reason?: string;
  readonly type?: string;
}

function curl(name: string, flags: readonly string[]): Driver {
  const toArgs = (url: string, call: Call, token: string): { args: string[]; body: string } => {
    const { method, url: target, body } = toRest(url, call);
    const bodyFlags = ["--header", "content-type: application/json", "--data-binary", "@-"];
    return {
      args: [
        ...["--silent", "--request", method, ...flags, ...headerFlags("--header", headersOf(call, token))],
        ...(body === undefined ? [] : bodyFlags),
        target,
      ],
      body: body ?? "",
    };
  };
  return {
    name,
    program: "curl",
    sendsStreams: false,
    async call(url, call, token = "") {
      const { args, body } = toArgs(url, call, token);
      const { stdout } = await run("curl", ["--write-out", "\n%{http_code}", ...args], body);
      const end = stdout.lastIndexOf("\n");
      const answer = JSON.parse(stdout.slice(0, end));
      if (stdout.slice(end + 1) === "200") return { answer };
      const reason = answer.details.find((detail: StatusDetail) => detail.reason)?.reason;
      return { refusal: { code: answer.code, reason } };
    },
    watch(url, call, signal) {
      const { args, body } = toArgs(url, call, "");
      return follow("curl", ["--no-buffer", ...args], body, signal);
    },
  };
}

function headerFlags(flag: string, headers: Readonly<Record<string, string>>): string[] {
  return Object.entries(headers).flatMap(([name, value]) => [flag, `${name}: ${value}`]);
}

const grpcurl: Driver = {
  name: "grpcurl, knowing nothing but the address",
  program: "grpcurl",
  sendsStreams: true,
  async call(url, call, token = "") {
    const { code, stdout, stderr } = await run(
      "grpcurl",
      ["-format-error", ...toGrpcurlArgs(url, call, token)],
      toJsonTexts(call),
    );
    if (code === 0) return { answer: JSON.parse(stdout) };
    const status = JSON.parse(stderr.slice(stderr.indexOf("{")));
    const reason = status.details.find((detail: StatusDetail) => detail.reason)?.reason;
    return { refusal: { code: nameOf(status.code), reason } };
  },
  watch: (url, call, signal) => follow("grpcurl", toGrpcurlArgs(url, call, ""), toJsonTexts(call), signal),
};

function toGrpcurlArgs(url: string, call: Call, token: string): string[] {
  return [
    ...["-plaintext", "-emit-defaults", "-d", "@", ...headerFlags("-H", headersOf(call, token))],
    ...[url.slice("http://".length), `${call.service}/${call.method}`],
  ];
}

function bufCurl(protocol: "grpc" | "grpcweb" | "connect"): Driver {
  const toArgs = (url: string, call: Call, token: string): string[] => [
    ...["curl", "--http2-prior-knowledge", "--emit-defaults", "--protocol", protocol, "--data", "@-"],
    ...headerFlags("--header", headersOf(call, token)),
    `${url}/${call.service}/${call.method}`,
  ];
  return {
    name: `buf curl over ${protocol}, knowing nothing but the address`,
    program: "buf",
    sendsStreams: true,
    async call(url, call, token = "") {
      const { code, stdout, stderr } = await run(buf, toArgs(url, call, token), toJsonTexts(call));
      if (code === 0) return { answer: JSON.parse(stdout) };
      const error = JSON.parse(stderr.slice(stderr.indexOf("{")));
      const info = error.details.find((detail: StatusDetail) => detail.type === ErrorInfoSchema.typeName);
      const reason = info && fromBinary(ErrorInfoSchema, Buffer.from(info.value, "base64")).reason;
      return { refusal: { code: error.code.toUpperCase(), reason } };
    },
    watch: (url, call, signal) => follow(buf, toArgs(url, call, ""), toJsonTexts(call), signal),
  };
}

/** Each call goes over a transport of its own, so that nothing is left open. */
function connectNode(name: string, createTransport: (url: string) => Transport): Driver {
  return {
    name: `@connectrpc/connect-node, ${name}`,
    sendsStreams: true,
    async call(url, call, token = "") {
      try {
        return { answer: await callConnect(createTransport(url), call, headersOf(call, token)) };
      } catch (thrown) {
        const error = ConnectError.from(thrown);
        return {
          refusal: { code: nameOf(error.code), reason: error.findDetails(ErrorInfoSchema)[0]?.reason },
        };
      }
    },
    watch: (url, call, signal) => watchConnect(createTransport(url), call, headersOf(call, ""), signal),
  };
}

const grpcJs: Driver = {
  name: "@grpc/grpc-js, with what reflection says",
  sendsStreams: true,
  async call(url, call, token = "") {
    const headers = headersOf(call, token);
    const outcome = await callGrpcJs(url.slice("http://".length), { ...call, headers });
    if ("answer" in outcome) return outcome;
    return { refusal: { code: nameOf(outcome.code), reason: outcome.reason } };
  },
  watch: (url, call, signal) =>
    watchGrpcJs(url.slice("http://".length), { ...call, headers: headersOf(call, "") }, signal),
};

/** INVALID_ARGUMENT of 3. */
export function nameOf(code: number): string {
  return (Code[code] ?? String(code)).replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();
}

export const drivers: readonly Driver[] = [
  curl("curl over HTTP/1.1", ["--http1.1"]),
  curl("curl over HTTP/2", ["--http2-prior-knowledge"]),
  grpcurl,
  bufCurl("grpc"),
  bufCurl("grpcweb"),
  bufCurl("connect"),
  connectNode("Connect over HTTP/1.1", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1" })),
  connectNode("Connect with GET over HTTP/1.1", (baseUrl) =>
    createConnectTransport({ baseUrl, httpVersion: "1.1", useHttpGet: true }),
  ),
  connectNode("Connect with JSON over HTTP/1.1", (baseUrl) =>
    createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false }),
  ),
  connectNode("Connect over HTTP/2", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2" })),
  connectNode("Connect with GET and JSON over HTTP/2", (baseUrl) =>
    createConnectTransport({ baseUrl, httpVersion: "2", useHttpGet: true, useBinaryFormat: false }),
  ),
  connectNode("gRPC", (baseUrl) => createGrpcTransport({ baseUrl })),
  connectNode("gRPC with JSON", (baseUrl) => createGrpcTransport({ baseUrl, useBinaryFormat: false })),
  connectNode("gRPC-Web over HTTP/1.1", (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })),
  connectNode("gRPC-Web over HTTP/2", (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "2" })),
  connectNode("gRPC-Web with JSON", (baseUrl) =>
    createGrpcWebTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false }),
  ),
  grpcJs,
];
