/**
 * Requests for fuzzers: every RPC and every REST path, in every protocol, with valid, odd and broken parts. They use
 * only the API: the descriptors in gen/ and the server's own OpenAPI description.
 */

import { gzipSync } from "node:zlib";
import {
  create,
  type DescField,
  type DescMessage,
  type DescMethod,
  type Message,
  ScalarType,
  toBinary,
  toJsonString,
} from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { Health } from "#gen/grpc/health/v1/health_pb.ts";
import { ServerReflection } from "#gen/grpc/reflection/v1/reflection_pb.ts";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { loadPackages } from "../support/whole-program.ts";
import { mutate, type Random } from "./mutations.ts";

/** A request before it is encoded for a version of HTTP. */
export interface FuzzRequest {
  readonly method: string;
  readonly path: string;
  /** Names and values, without pseudo-headers, host and content length. */
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Buffer;
}

/** Material for requests. */
export interface Api {
  readonly restPaths: readonly RestPath[];
  /** A token that the server accepts; undefined if the server needs none. */
  readonly token: string | undefined;
}

interface RestPath {
  readonly method: string;
  /** With parameters in braces. */
  readonly path: string;
  /** A body that the server accepts; empty if there is none. */
  readonly body: string;
}

const services = (await loadPackages()).flatMap(({ files }) => files.flatMap((file) => file.services));
const methods = [...services, Health, ServerReflection].flatMap(
  (service): readonly DescMethod[] => service.methods,
);
const unary = methods.filter(({ methodKind }) => methodKind === "unary");
const streams = methods.filter(({ methodKind }) => methodKind !== "unary");

/**
 * Reads the REST paths of a server.
 *
 * @param description its /openapi.json
 */
export function readApi(description: string, token: string | undefined): Api {
  const { paths } = JSON.parse(description);
  const restPaths = Object.entries<Record<string, { requestBody?: unknown }>>(paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([method]) => ["get", "post", "put", "patch", "delete"].includes(method))
      .map(([method, operation]) => ({
        method: method.toUpperCase(),
        path,
        // The server would call the address of a peer.
        body: path.includes("peer") ? "" : findExample(operation.requestBody),
      })),
  );
  if (restPaths.length < 50) throw new Error(`/openapi.json describes ${restPaths.length} paths`);
  return { restPaths, token };
}

function findExample(body: unknown): string {
  const text = JSON.stringify(body ?? "");
  const found = /"example":(\{.*?\})(?:,"|\}\}\}$)/.exec(text)?.[1] ?? "";
  try {
    // SLH-DSA signatures take seconds.
    return JSON.stringify(JSON.parse(found)).replace(/SLH-DSA-[\w-]+/g, "ML-DSA-44");
  } catch {
    return "";
  }
}

/** Makes a request. */
export function makeRequest(random: Random, api: Api): FuzzRequest {
  const request = random.pick([
    makeGrpc,
    makeGrpc,
    makeGrpcWeb,
    makeConnectUnary,
    makeConnectGet,
    makeConnectGet,
    makeConnectStream,
    makeRest,
    makeRest,
    makeWatch,
    makePage,
  ])(random, api);
  return spoil(random, withHeaders(random, request, api));
}

const encodings = ["identity", "gzip", "br", "x", "", "gzip, gzip", "zstd", "deflate"];

function pathOf({ parent, name }: DescMethod): string {
  return `/${parent.typeName}/${name}`;
}

function pickMethod(random: Random): DescMethod {
  return random.pick(random.below(3) === 0 ? streams : unary);
}

/** Up to four envelopes: complete, truncated, compressed, or marked wrongly. */
function makeEnvelopes(random: Random, input: DescMessage, asJson: boolean): Buffer {
  const pieces: Buffer[] = [];
  for (let count = random.pick([0, 1, 1, 1, 1, 2, 4]); count > 0; count -= 1) {
    const plain = encode(makeMessage(random, input), input, asJson);
    const isZipped = random.below(6) === 0;
    const bytes = isZipped ? gzipSync(plain) : plain;
    const prefix = Buffer.alloc(5);
    prefix.writeUInt8(random.below(12) === 0 ? random.below(256) : isZipped ? 1 : 0);
    prefix.writeUInt32BE(
      random.below(12) === 0 ? random.pick([0, 1, bytes.length + 1, 0xffffffff]) : bytes.length,
      1,
    );
    pieces.push(prefix, bytes);
  }
  return Buffer.concat(pieces);
}

/** A call whose messages are in envelopes. */
function makeEnveloped(
  random: Random,
  types: readonly string[],
  encodingHeader: string,
  headers: FuzzRequest["headers"],
  method = pickMethod(random),
): FuzzRequest {
  const type = random.pick(types);
  return {
    method: "POST",
    path: pathOf(method),
    headers: [
      ["content-type", type],
      ...headers,
      ...maybe(random, 4, encodingHeader, () => random.pick(encodings)),
    ],
    body: makeEnvelopes(random, method.input, type.endsWith("json")),
  };
}

const grpcTypes = ["application/grpc", "application/grpc", "application/grpc+proto", "application/grpc+json"];

function makeGrpc(random: Random): FuzzRequest {
  return makeEnveloped(random, grpcTypes, "grpc-encoding", [
    ["te", "trailers"],
    ...maybe(random, 4, "grpc-timeout", () => random.pick(["1S", "5m", "0m", "x", "99999999H", "1u"])),
  ]);
}

function makeGrpcWeb(random: Random): FuzzRequest {
  const isText = random.below(4) === 0;
  const types = grpcTypes.map((type) => type.replace("grpc", isText ? "grpc-web-text" : "grpc-web"));
  const request = makeEnveloped(random, types, "grpc-encoding", [["x-grpc-web", "1"]]);
  return isText ? { ...request, body: Buffer.from(request.body.toString("base64")) } : request;
}

function makeConnectStream(random: Random): FuzzRequest {
  const types = ["application/connect+proto", "application/connect+json"];
  const method = random.pick(random.below(6) === 0 ? unary : streams);
  return makeEnveloped(random, types, "connect-content-encoding", [], method);
}

function makeConnectUnary(random: Random): FuzzRequest {
  const { input, ...method } = random.pick(unary);
  const asJson = random.below(2) === 0;
  return {
    method: "POST",
    path: pathOf(method as DescMethod),
    headers: [
      ["content-type", asJson ? "application/json" : "application/proto"],
      ...maybe(random, 2, "connect-protocol-version", () => random.pick(["1", "1", "2"])),
      ...maybe(random, 4, "content-encoding", () => random.pick(encodings)),
      ...maybe(random, 4, "connect-timeout-ms", () => random.pick(["1", "0", "x", "99999999999"])),
    ],
    body: encode(makeMessage(random, input), input, asJson),
  };
}

function makeConnectGet(random: Random): FuzzRequest {
  const method = random.below(3) === 0 ? PqcService.method.getHealth : random.pick(unary);
  const asJson = random.below(2) === 0;
  const message = encode(makeMessage(random, method.input), method.input, asJson);
  const query = new URLSearchParams({ connect: "v1", encoding: asJson ? "json" : "proto", base64: "1" });
  query.set("message", message.toString("base64url"));
  if (random.below(6) === 0) query.set("compression", random.pick(encodings));
  return { method: "GET", path: `${pathOf(method)}?${query}`, headers: [], body: Buffer.alloc(0) };
}

function makeRest(random: Random, { restPaths }: Api): FuzzRequest {
  const { method, path, body } = random.pick(restPaths);
  const filled = path.replace(/\{[^}]*\}/g, () => random.pick(["1", "name/x", "x", "%2F", "audit", "0/000"]));
  const query =
    random.below(4) === 0 ? `?${random.pick(["pageSize=1", "x=y", "pageToken=%00", "alt=json"])}` : "";
  const text = random.below(3) === 0 ? random.pick(["", "{}", "[", "null", '{"x":1}']) : body;
  return {
    method,
    path: filled + query,
    headers:
      method === "GET"
        ? []
        : [["content-type", random.pick(["application/json", "application/json", "text/plain"])]],
    body: method === "GET" ? Buffer.alloc(0) : Buffer.from(text),
  };
}

/** Streams over REST. */
function makeWatch(random: Random): FuzzRequest {
  const path = random.pick(["/api/blockchain/chain/watch", "/api/kms/audit/watch", "/api/auth/audit/watch"]);
  const accept = random.pick(["text/event-stream", "application/json", "application/x-ndjson", "*/*"]);
  return { method: "GET", path, headers: [["accept", accept]], body: Buffer.alloc(0) };
}

const pages = [
  ...["/", "/livez", "/readyz", "/metrics", "/reference", "/console", "/console/", "/openapi.json"],
  ...["/nothing", "/nothing.Service/Nothing", "/pqc.PqcService/Nothing", "*", "//", "/%"],
];

function makePage(random: Random): FuzzRequest {
  const method = random.pick(["GET", "GET", "GET", "HEAD", "OPTIONS", "POST", "DELETE", "TRACE", "PROPFIND"]);
  return { method, path: random.pick(pages), headers: [], body: Buffer.alloc(0) };
}

function maybe(
  random: Random,
  oneIn: number,
  name: string,
  value: () => string,
): (readonly [string, string])[] {
  return random.below(oneIn) === 0 ? [[name, value()]] : [];
}

/** Adds headers that are valid in every protocol. */
function withHeaders(random: Random, request: FuzzRequest, { token }: Api): FuzzRequest {
  const authorization = () =>
    random.pick([...(token === undefined ? [] : Array(6).fill(`Bearer ${token}`)), "Bearer a.b.c", "x", ""]);
  const headers = [
    ...request.headers,
    ...maybe(random, token === undefined ? 8 : 1, "authorization", authorization),
    ...maybe(random, 8, "expect", () => random.pick(["100-continue", "100-continue", "x"])),
    ...maybe(random, 6, "accept-encoding", () => random.pick(encodings)),
    ...maybe(random, 10, "accept", () => random.pick(["*/*", "text/html", "application/json;q=0", "x"])),
    ...maybe(random, 12, "origin", () => random.pick(["https://example.com", "null", "http://localhost"])),
    ...maybe(random, 20, "access-control-request-method", () => "POST"),
    ...maybe(random, 20, "if-none-match", () => random.pick(["*", '"x"'])),
    ...maybe(random, 20, "x-forwarded-for", () => random.pick(["::1", "x"])),
    ...maybe(random, 20, "traceparent", () => `00-${"1".repeat(32)}-${"2".repeat(16)}-01`),
    ...maybe(random, 20, "x-request-id", () => random.pick(["a", "\x7f", "x".repeat(300)])),
    ...maybe(random, 40, "x-long", () => "x".repeat(random.pick([9000, 40_000]))),
  ];
  return { ...request, headers };
}

/** Breaks one part of some requests. */
function spoil(random: Random, request: FuzzRequest): FuzzRequest {
  const { headers } = request;
  switch (random.below(16)) {
    case 0:
      return { ...request, body: mutate(random, request.body) };
    case 1:
      return { ...request, body: request.body.subarray(0, random.below(request.body.length + 1)) };
    case 2:
      return { ...request, method: random.pick(["GET", "HEAD", "POST", "OPTIONS", "PUT", "CONNECT", "x"]) };
    case 3:
      return { ...request, headers: headers.filter(([name]) => name !== "content-type") };
    case 4:
      return { ...request, headers: [["content-type", random.pick(contentTypes)], ...headers] };
    case 5:
      return { ...request, path: `${request.path}${random.pick(["/", "?", "#", "%00", "?connect=v1"])}` };
    case 6:
      return { ...request, path: mutateText(random, request.path) };
    case 7: {
      const [name, value] = random.pick([
        ["content-encoding", "gzip"],
        ["grpc-encoding", "gzip"],
        ...headers,
      ]);
      const kept = headers.filter((header) => header[0] !== name);
      return { ...request, headers: [...kept, [name, mutateText(random, value)]] };
    }
    default:
      return request;
  }
}

/** Mutates a text, which remains one that a client can send. */
function mutateText(random: Random, text: string): string {
  return mutate(random, Buffer.from(text))
    .toString("latin1")
    .replace(/[^\x21-\x7e]/g, "?");
}

const contentTypes = [
  ...["application/json", "application/proto", "application/grpc", "application/grpc-web-text"],
  ...["application/connect+json", "text/plain", "multipart/form-data; boundary=x"],
  ...["application/x-www-form-urlencoded", "x", ""],
];

function encode(message: Message, schema: DescMessage, asJson: boolean): Buffer {
  if (asJson) return Buffer.from(toJsonString(schema, message));
  return Buffer.from(toBinary(schema, message));
}

/** A message with some fields set. */
function makeMessage(random: Random, schema: DescMessage): Message {
  const message = create(schema);
  const filled = reflect(schema, message, false);
  for (const field of schema.fields) {
    if (random.below(2) === 0 || field.fieldKind !== "scalar") continue;
    filled.set(field, makeScalar(random, field));
  }
  return message;
}

const texts = ["", "x", "name/x", "ML-DSA-44", "ML-KEM-512", "audit", "1", "2026-01-01T00:00:00Z"];

function makeScalar(random: Random, { scalar }: DescField): unknown {
  switch (scalar) {
    case ScalarType.STRING:
      return random.pick(texts);
    case ScalarType.BYTES:
      return Buffer.alloc(random.pick([0, 1, 32, 800, 1312, 2420]), 3);
    case ScalarType.BOOL:
      return true;
    case ScalarType.INT64:
    case ScalarType.UINT64:
    case ScalarType.SINT64:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return BigInt(random.below(3));
    default:
      return random.below(3);
  }
}
