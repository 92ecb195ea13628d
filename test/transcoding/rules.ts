/** Builds services from single rules, so that one row of a table is one rule. */

import {
  create,
  createFileRegistry,
  createRegistry,
  type DescMessage,
  type DescMethod,
  type DescMethodUnary,
  type DescService,
  type JsonValue,
  type Message,
  setExtension,
  toJson,
} from "@bufbuild/protobuf";
import {
  FileDescriptorProtoSchema,
  type MethodDescriptorProto,
  MethodDescriptorProtoSchema,
  MethodOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import type { MethodImplSpec, ServiceImplSpec } from "@connectrpc/connect";
import { http } from "#gen/google/api/annotations_pb.ts";
import { type HttpRule, HttpRuleSchema } from "#gen/google/api/http_pb.ts";
import { collectFiles } from "../../src/transcoding/descriptors.ts";
import { EverythingSchema } from "../gen/testing/kinds_pb.ts";
import { defaultBodyLimits } from "../server/default-limits.ts";
import { type Answer, type Refusal, type RequestParts, refusalOf, send } from "./client.ts";
import { createRestServer, type RestOptions, type RestServer } from "./rest-server.ts";

/** An HttpRule as written in a proto file. */
export interface Rule {
  readonly get?: string;
  readonly put?: string;
  readonly post?: string;
  readonly delete?: string;
  readonly patch?: string;
  readonly custom?: { readonly kind: string; readonly path: string };
  readonly body?: string;
  readonly responseBody?: string;
  readonly additionalBindings?: readonly Rule[];
}

/** A rule and its RPC; the input and output default to testing.Everything. */
export interface RuledRpc extends Rule {
  readonly rpc?: string;
  readonly input?: DescMessage;
  readonly output?: DescMessage;
}

/** The same, or in one line: "Get: GET /v1/{name}" for a named RPC, "POST /v1/{name} body: *". */
export type WrittenRule = RuledRpc | string;

/** Parses a rule written in one line. */
export function readRule(rule: WrittenRule): RuledRpc {
  if (typeof rule !== "string") return rule;
  const parts = /^(?:(?<rpc>\w+): )?(?<kind>\S+) (?<path>\S+)(?: body: (?<body>\S+))?$/.exec(rule)?.groups;
  if (parts === undefined) throw new Error(`"${rule}" is not a rule`);
  const { rpc, kind = "", path = "", body } = parts;
  const method = patterns.find((name) => name.toUpperCase() === kind);
  return {
    ...(method === undefined ? { custom: { kind, path } } : { [method]: path }),
    ...(rpc && { rpc }),
    ...(body && { body }),
  };
}

/** What the handler of an RPC was called with, in JSON form. */
export interface Call {
  readonly rpc: string;
  readonly request: JsonValue;
}

const registry = createRegistry(...collectFiles([EverythingSchema.file]));
const patterns = ["get", "put", "post", "delete", "patch"] as const;

/** Creates the descriptor of a service with one RPC per rule, named by position: Rpc1, Rpc2. */
export function describeService(rules: readonly WrittenRule[], name = "testing.Ruled"): DescService {
  const methods = rules.map(describeMethod);
  const types = rules
    .map(readRule)
    .flatMap(({ input, output }) => [input ?? EverythingSchema, output ?? EverythingSchema]);
  const files = new Map(types.map(({ file }) => [file.proto.name, file]));
  const file = create(FileDescriptorProtoSchema, {
    name: `${name}.proto`,
    package: name.slice(0, name.lastIndexOf(".")),
    syntax: "proto3",
    dependency: [...files.keys()],
    service: [{ name: name.slice(name.lastIndexOf(".") + 1), method: methods }],
  });
  const service = createFileRegistry(file, (path) => files.get(path)).getService(name);
  if (service === undefined) throw new Error(`${name} was not built`);
  return service;
}

function describeMethod(written: WrittenRule, index: number): MethodDescriptorProto {
  const { rpc, input, output, ...rule } = readRule(written);
  const options = create(MethodOptionsSchema);
  setExtension(options, http, createRule(rule));
  return create(MethodDescriptorProtoSchema, {
    name: rpc ?? `Rpc${index + 1}`,
    inputType: `.${(input ?? EverythingSchema).typeName}`,
    outputType: `.${(output ?? EverythingSchema).typeName}`,
    options,
  });
}

function createRule(rule: Rule): HttpRule {
  const message = create(HttpRuleSchema, {
    body: rule.body ?? "",
    responseBody: rule.responseBody ?? "",
    additionalBindings: rule.additionalBindings?.map(createRule) ?? [],
  });
  for (const pattern of patterns) {
    const path = rule[pattern];
    if (path !== undefined) message.pattern = { case: pattern, value: path };
  }
  if (rule.custom)
    message.pattern = create(HttpRuleSchema, { pattern: { case: "custom", value: rule.custom } }).pattern;
  return message;
}

/** A server of some rules that records its calls. */
export interface Ruled {
  readonly transcoder: RestServer;
  readonly calls: readonly Call[];
}

/** Serves rules. Each RPC returns the given answer, or an empty message. */
export function serveRules(
  rules: readonly WrittenRule[],
  answer: Record<string, unknown> = {},
  options: Partial<RestOptions> = {},
): Ruled {
  const calls: Call[] = [];
  const service = implementUnary(describeService(rules), (rpc) => (message) => {
    const desc = registry.getMessage(message.$typeName);
    if (desc === undefined) throw new Error(`${message.$typeName} is not known here`);
    calls.push({ rpc, request: toJson(desc, message, { registry }) });
    return answer;
  });
  return { calls, transcoder: createRestServer({ ...defaultBodyLimits, ...options, services: [service] }) };
}

/** Implements a service described at run time, whose calls have no static types; all of them are unary. */
export function implementUnary(
  service: DescService,
  implement: (rpc: string) => (request: Message) => Record<string, unknown>,
): ServiceImplSpec {
  const methods: Record<string, MethodImplSpec> = {};
  for (const method of service.methods) {
    if (!isUnary(method)) continue;
    methods[method.localName] = { kind: "unary", method, impl: implement(method.name) };
  }
  return { service, methods };
}

function isUnary(method: DescMethod): method is DescMethodUnary {
  return method.methodKind === "unary";
}

/** Calls a server of some rules once and returns the call or the refusal. */
export async function outcome(
  rules: readonly WrittenRule[],
  line: string,
  parts?: RequestParts,
): Promise<Call | Refusal> {
  const { transcoder, calls } = serveRules(rules);
  const answer = await send(transcoder, line, parts);
  const [call] = calls;
  return call !== undefined && answer.status === 200 ? call : refusalOf(answer);
}

/** Calls a single rule and returns the request that its RPC received, or the refusal. */
export async function received(
  rule: WrittenRule,
  line: string,
  parts?: RequestParts,
): Promise<JsonValue | Refusal> {
  const result = await outcome([rule], line, parts);
  return "request" in result ? result.request : result;
}

/** Calls a single rule that returns a given answer, and reads the response. */
export function answered(rule: RuledRpc, line: string, answer: Record<string, unknown>): Promise<Answer> {
  return send(serveRules([rule], answer).transcoder, line);
}

/** The error with which a server of these rules refuses to start; undefined if it starts. */
export function startRefusal(...services: (readonly RuledRpc[])[]): string | undefined {
  const specs = services.map((rules, index) =>
    implementUnary(describeService(rules, `testing.Ruled${index + 1}`), () => () => ({})),
  );
  try {
    createRestServer({ ...defaultBodyLimits, services: specs });
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** A refusal with INVALID_ARGUMENT, which is HTTP status 400. */
export function invalid(reason: string, ...fields: string[]): Refusal {
  return { status: 400, code: "INVALID_ARGUMENT", reason, fields };
}

/** The refusal of a path without a rule. */
export const notFound: Refusal = { status: 404, code: "NOT_FOUND", reason: "ROUTE_NOT_FOUND", fields: [] };

/** The refusal of a path whose rules have different methods. */
export const notAllowed: Refusal = {
  status: 405,
  code: "UNIMPLEMENTED",
  reason: "METHOD_NOT_ALLOWED",
  fields: [],
};
