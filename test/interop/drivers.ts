/** Clients that the project did not write, each behind one function. */
import { type DescMethodUnary, fromBinary, fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.ts";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { callGrpcJs } from "./grpc-js.ts";
import type { Row } from "./rows.ts";
import { run } from "./tools.ts";

/** What a call came to: an answer as JSON, or a refusal. */
export type Outcome =
  | { readonly answer: unknown }
  | { readonly refusal: { readonly code: string; readonly reason: string | undefined } };

/** A client. */
export interface Driver {
  readonly name: string;
  /** The program that it needs on the machine. */
  readonly program?: string;
  call(url: string, row: Row, token: string): Promise<Outcome>;
}

interface StatusDetail {
  readonly reason?: string;
  readonly type?: string;
}

function curl(name: string, flags: readonly string[]): Driver {
  return {
    name,
    program: "curl",
    async call(url, { rest, request, withToken }, token) {
      const [method = "", path = ""] = rest.split(" ");
      const isGet = method === "GET";
      const query = new URLSearchParams(request as Record<string, string>);
      const target = isGet && query.size > 0 ? `${url}${path}?${query}` : `${url}${path}`;
      const { stdout } = await run(
        "curl",
        [
          ...["--silent", "--request", method, "--write-out", "\n%{http_code}", ...flags],
          ...(withToken ? ["--header", `authorization: Bearer ${token}`] : []),
          ...(isGet ? [] : ["--header", "content-type: application/json", "--data-binary", "@-"]),
          target,
        ],
        isGet ? "" : JSON.stringify(request),
      );
      const end = stdout.lastIndexOf("\n");
      const body = JSON.parse(stdout.slice(0, end));
      if (stdout.slice(end + 1) === "200") return { answer: body };
      const reason = body.details.find((detail: StatusDetail) => detail.reason)?.reason;
      return { refusal: { code: body.code, reason } };
    },
  };
}

const grpcurl: Driver = {
  name: "grpcurl, knowing nothing but the address",
  program: "grpcurl",
  async call(url, { service, method, request, withToken }, token) {
    const { code, stdout, stderr } = await run(
      "grpcurl",
      [
        ...["-plaintext", "-emit-defaults", "-format-error", "-d", "@"],
        ...(withToken ? ["-H", `authorization: Bearer ${token}`] : []),
        ...[url.slice("http://".length), `${service}/${method}`],
      ],
      JSON.stringify(request),
    );
    if (code === 0) return { answer: JSON.parse(stdout) };
    const status = JSON.parse(stderr.slice(stderr.indexOf("{")));
    const reason = status.details.find((detail: StatusDetail) => detail.reason)?.reason;
    return { refusal: { code: nameOf(status.code), reason } };
  },
};

function bufCurl(protocol: "grpc" | "grpcweb" | "connect"): Driver {
  return {
    name: `buf curl over ${protocol}, knowing nothing but the address`,
    program: "buf",
    async call(url, { service, method, request, withToken }, token) {
      const { code, stdout, stderr } = await run(
        "buf",
        [
          ...["curl", "--http2-prior-knowledge", "--emit-defaults", "--protocol", protocol, "--data", "@-"],
          ...(withToken ? ["--header", `authorization: Bearer ${token}`] : []),
          `${url}/${service}/${method}`,
        ],
        JSON.stringify(request),
      );
      if (code === 0) return { answer: JSON.parse(stdout) };
      const error = JSON.parse(stderr.slice(stderr.indexOf("{")));
      const info = error.details.find((detail: StatusDetail) => detail.type === ErrorInfoSchema.typeName);
      const reason = info && fromBinary(ErrorInfoSchema, Buffer.from(info.value, "base64")).reason;
      return { refusal: { code: error.code.toUpperCase(), reason } };
    },
  };
}

/** Generated clients of Connect; each call over a transport of its own, so that nothing is left open. */
function connectNode(name: string, createTransport: (url: string) => Transport): Driver {
  return {
    name: `@connectrpc/connect-node, ${name}`,
    async call(url, { service, method, request, withToken }, token) {
      const desc = [PqcService, TokenService]
        .find(({ typeName }) => typeName === service)
        ?.methods.find((candidate) => candidate.name === method) as DescMethodUnary;
      const header = withToken ? { authorization: `Bearer ${token}` } : undefined;
      try {
        const message = fromJson(desc.input, request as JsonValue);
        const response = await createTransport(url).unary(desc, undefined, undefined, header, message);
        return { answer: toJson(desc.output, response.message, { alwaysEmitImplicit: true }) };
      } catch (thrown) {
        const error = ConnectError.from(thrown);
        return {
          refusal: { code: nameOf(error.code), reason: error.findDetails(ErrorInfoSchema)[0]?.reason },
        };
      }
    },
  };
}

const grpcJs: Driver = {
  name: "@grpc/grpc-js, with what reflection says",
  async call(url, { service, method, request, withToken }, token) {
    const metadata = withToken ? { authorization: `Bearer ${token}` } : {};
    const outcome = await callGrpcJs(url.slice("http://".length), service, method, request, metadata);
    if ("answer" in outcome) return outcome;
    return { refusal: { code: nameOf(outcome.code), reason: outcome.reason } };
  },
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
