/** Compiles the google.api.http options of methods to routes, and rejects rules that cannot work. */
import type { DescField, DescMessage, DescMethod } from "@bufbuild/protobuf";
import { getOption, hasOption } from "@bufbuild/protobuf";
import type { MethodImplSpec, ServiceImplSpec } from "@connectrpc/connect";
import { http } from "#gen/google/api/annotations_pb.ts";
import type { HttpRule } from "#gen/google/api/http_pb.ts";
import type { RestStyle, ServiceProfile } from "../calls/service-profile.ts";
import { isKnownMethod } from "../http/http-methods.ts";
import { type FieldPath, findLeaf, resolveFieldPath, whyNotTextual } from "./fields.ts";
import { parseTemplate, type Template, type Variable, writeSegments } from "./template.ts";

/** Where the fields of a request come from, besides its path. */
export type BodyRule =
  /** No body; every field can be a query parameter. */
  | { readonly kind: "none" }
  /** The body is the whole message; query parameters are not allowed. */
  | { readonly kind: "all" }
  /** The body is one field; the others can be query parameters. */
  | { readonly kind: "field"; readonly field: DescField };

/** One HTTP binding of one RPC. */
export interface Route {
  readonly httpMethod: string;
  readonly template: Template;
  readonly origin: string;
  readonly spec: MethodImplSpec;
  readonly variables: readonly { readonly variable: Variable; readonly path: FieldPath }[];
  readonly body: BodyRule;
  /** The field that becomes the response body; undefined for the whole message. */
  readonly responseField: DescField | undefined;
  /** The REST conventions of the service. */
  readonly style: RestStyle;
}

/** REST conventions by full service name; our own for all other services. */
export type Styles = Readonly<Record<string, Pick<ServiceProfile, "restStyle">>>;

/** Returns whether a message carries raw bytes with their own media type instead of JSON. */
export function isHttpBody(desc: DescMessage | undefined): boolean {
  return desc?.typeName === "google.api.HttpBody";
}

/**
 * Compiles the routes of services, in declaration order.
 *
 * @throws Error naming the RPC and the binding of a rule that could never work
 */
export function compileRoutes(services: readonly ServiceImplSpec[], styles: Styles = {}): Route[] {
  const routes = services.flatMap(({ service, methods }) => {
    const style = styles[service.typeName]?.restStyle ?? "own";
    return Object.values(methods).flatMap((spec) => compileMethod(spec, style));
  });
  const rpcs = services.flatMap(({ methods }) => Object.values(methods));
  requireFreePaths(routes, new Set(rpcs.map(({ method }) => `/${method.parent.typeName}/${method.name}`)));
  return routes;
}

/** gRPC and Connect call RPCs at their own paths, so a rule for such a path would never be reached. */
function requireFreePaths(routes: readonly Route[], rpcPaths: ReadonlySet<string>): void {
  for (const { template, origin } of routes) {
    if (template.verb === "" && rpcPaths.has(writeSegments(template)))
      throw new Error(
        `${origin}: "${template.text}" is already the path of the RPC itself; choose a different path`,
      );
  }
}

function compileMethod(spec: MethodImplSpec, style: RestStyle): Route[] {
  if (!hasOption(spec.method, http)) return [];
  const rule = getOption(spec.method, http);
  const name = `${spec.method.parent.typeName}.${spec.method.name}`;
  const additional = rule.additionalBindings.map((binding, index) => {
    const origin = `${name}, additional binding ${index + 1}`;
    if (binding.additionalBindings.length > 0) throw new Error(`${origin}: additional bindings may not nest`);
    return compileRule(spec, binding, origin, style);
  });
  return [compileRule(spec, rule, name, style), ...additional];
}

function compileRule(spec: MethodImplSpec, rule: HttpRule, origin: string, style: RestStyle): Route {
  const { httpMethod, path } = readPattern(rule, origin);
  const template = parse(path, origin);
  const { method } = spec;
  const variables = template.variables.map((variable) => ({
    variable,
    path: resolveVariable(method, variable, origin),
  }));
  const body = resolveBody(method, rule, httpMethod, origin);
  requireSingleUse(variables, body, origin);
  const responseField = resolveTopLevel(method.output, rule.responseBody, "response_body", origin);
  return { httpMethod, template, origin, spec, variables, body, responseField, style };
}

function readPattern(rule: HttpRule, origin: string): { httpMethod: string; path: string } {
  const { pattern } = rule;
  if (pattern.case === undefined) throw new Error(`${origin}: the rule has no method and no path`);
  if (pattern.case !== "custom") return { httpMethod: pattern.case.toUpperCase(), path: pattern.value };
  const { kind, path } = pattern.value;
  // RFC 9110, section 9.1: a method is a token; in google/api/http.proto, "*" means any method.
  if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(kind))
    throw new Error(`${origin}: "${kind}" is not an HTTP method`);
  const httpMethod = kind.toUpperCase();
  if (kind !== "*" && !isKnownMethod(httpMethod))
    throw new Error(
      `${origin}: the HTTP method "${kind}" is not supported; use a registered one, or "*" for any`,
    );
  return { httpMethod, path };
}

function parse(path: string, origin: string): Template {
  try {
    return parseTemplate(path);
  } catch (error) {
    throw new Error(`${origin}: ${error instanceof Error ? error.message : error}`);
  }
}

function resolveVariable(method: DescMethod, variable: Variable, origin: string): FieldPath {
  const path = resolveFieldPath(method.input, variable.fieldPath, false);
  const name = variable.fieldPath.join(".");
  if (typeof path === "string") throw new Error(`${origin}: path variable "${name}": ${path}`);
  const why = whyNotTextual(findLeaf(path), "path");
  if (why !== undefined)
    throw new Error(`${origin}: path variable "${name}" ${why}; it must be a single plain value`);
  return path;
}

function resolveBody(method: DescMethod, rule: HttpRule, httpMethod: string, origin: string): BodyRule {
  if (rule.body === "") {
    // RFC 10008, section 2: the content is the query.
    if (httpMethod === "QUERY") throw new Error(`${origin}: a QUERY request needs a body; set body`);
    return { kind: "none" };
  }
  // RFC 9110, sections 9.3.1 and 9.3.2: content in these requests has no meaning, and proxies drop it.
  if (httpMethod === "GET" || httpMethod === "HEAD")
    throw new Error(`${origin}: a ${httpMethod} request cannot have a body; remove body`);
  if (rule.body === "*") return { kind: "all" };
  const field = resolveTopLevel(method.input, rule.body, "body", origin);
  return field === undefined ? { kind: "none" } : { kind: "field", field };
}

function resolveTopLevel(
  desc: DescMessage,
  name: string,
  option: string,
  origin: string,
): DescField | undefined {
  if (name === "") return undefined;
  const field = desc.fields.find((candidate) => candidate.name === name);
  if (field === undefined)
    throw new Error(`${origin}: ${option} "${name}" is not a top-level field of ${desc.typeName}`);
  return field;
}

/** The path and the body must not set the same field, or two members of one oneof. */
function requireSingleUse(variables: Route["variables"], body: BodyRule, origin: string): void {
  const bodyPath: FieldPath | undefined = body.kind === "field" ? [body.field] : undefined;
  const taken = new Map<string, DescField>();
  for (const path of [...(bodyPath ? [bodyPath] : []), ...variables.map((variable) => variable.path)]) {
    if (path.length === 1 && path[0] === bodyPath?.[0] && path !== bodyPath) {
      throw new Error(`${origin}: the field "${path[0].name}" is both in the path and the body`);
    }
    let at = "";
    for (const field of path) {
      if (field.oneof !== undefined) {
        const key = `${at}/${field.oneof.name}`;
        const other = taken.get(key) ?? field;
        if (other !== field)
          throw new Error(`${origin}: "${other.name}" and "${field.name}" belong to the same oneof`);
        taken.set(key, field);
      }
      at += `/${field.name}`;
    }
  }
}
