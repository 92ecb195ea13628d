/** Refuses HTTP methods that no route takes: 405 if the path takes others, 501 for an unknown method. */
import http from "node:http";
import type { ConnectError } from "@connectrpc/connect";
import { refuse } from "../errors.ts";

/** Knows the methods of all paths outside of the REST calls. */
export interface PathMethods {
  /** Adds a path in Fastify's form: "/console/:name". */
  add(path: string, methods: readonly string[]): void;
  /** Tells whether a path was added. */
  has(path: string): boolean;
  /**
   * The methods of a path that does not take this method, as the header `allow` lists them. Undefined if the path
   * takes the method or was not added.
   */
  allowInstead(method: string, path: string): string | undefined;
}

/** Creates an empty set of paths. */
export function createPathMethods(): PathMethods {
  const methodsOf = new Map<string, Set<string>>();
  const patterns: { readonly pattern: RegExp; readonly path: string }[] = [];
  const find = (path: string): ReadonlySet<string> | undefined =>
    methodsOf.get(path) ?? methodsOf.get(patterns.find(({ pattern }) => pattern.test(path))?.path ?? "");
  return {
    has: (path) => find(path) !== undefined,
    add(path, methods) {
      const known = methodsOf.get(path) ?? new Set();
      for (const method of methods) known.add(method);
      if (!methodsOf.has(path) && path.includes(":")) patterns.push({ pattern: toPattern(path), path });
      methodsOf.set(path, known);
    },
    allowInstead(method, path) {
      const known = find(path);
      return known === undefined || known.has(method) ? undefined : [...known].sort().join(", ");
    },
  };
}

function toPattern(path: string): RegExp {
  const segments = path
    .split("/")
    .map((segment) => (segment.startsWith(":") ? "[^/]+" : RegExp.escape(segment)));
  return new RegExp(`^${segments.join("/")}$`);
}

/** Refuses a method that a path does not take; `allow` lists the methods that it takes. */
export function methodNotAllowed(method: string, path: string, allow: string): ConnectError {
  const error = refuse("METHOD_NOT_ALLOWED", `${path} supports ${allow}, not ${method}`, { allow });
  error.metadata.set("allow", allow);
  return error;
}

/** Refuses a method that is not registered, or that this server does not implement for any path. */
export function methodUnknown(method: string): ConnectError {
  return refuse("METHOD_UNKNOWN", `this server does not support the method ${method.slice(0, 40)}`, {
    method: method.slice(0, 40),
  });
}

/** The methods that routes have. Fastify fails for some of the others, such as QUERY without a content type. */
export const routedMethods: ReadonlySet<string> = new Set([
  "DELETE",
  "GET",
  "HEAD",
  "OPTIONS",
  "PATCH",
  "POST",
  "PUT",
  "TRACE",
]);

/** Tells whether a method is registered. This server is not a proxy, so it does not take CONNECT. */
export function isKnownMethod(method: string): boolean {
  return http.METHODS.includes(method) && method !== "CONNECT";
}
