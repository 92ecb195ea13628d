/**
 * Serves the pages: probes, metrics, and pages that the embedding program mounts. Fastify serves only these,
 * never calls.
 */
import { Code } from "@connectrpc/connect";
import Fastify, { type FastifyInstance } from "fastify";
import { requireScope } from "../calls/require-scope.ts";
import { metricsScope } from "../calls/service-profile.ts";
import { findReason, refuse, toConnectError } from "../errors.ts";
import { collectServiceFiles } from "../transcoding/descriptors.ts";
import { splitTarget } from "../transcoding/http.ts";
import type { Route } from "../transcoding/routes.ts";
import type { Transcoder } from "../transcoding/transcoder.ts";
import type { HealthBoard } from "./health.ts";
import { requireRole } from "./interceptors/access.ts";
import { chargeTo } from "./interceptors/caller.ts";
import type { ListenerOptions } from "./listener-options.ts";
import type { Metrics } from "./metrics.ts";
import type { ServerOptions } from "./options.ts";
import { type RequestIds, requestIdHeader } from "./request-ids.ts";

export interface PagesDeps {
  readonly services: ServerOptions["services"];
  readonly transcoder: Transcoder;
  readonly health: HealthBoard;
  readonly metrics: Metrics;
  readonly requestIds: RequestIds;
  readonly options: ServerOptions;
}

export interface Pages {
  /** Their paths and methods. */
  readonly paths: PathMethods;
  readonly serve: ListenerOptions["onPage"];
  close(): Promise<void>;
}

/** Mounts the pages. */
export async function createPages(deps: PagesDeps): Promise<Pages> {
  const { services, transcoder, options } = deps;
  const paths = createPathMethods();
  const app = Fastify({ logger: false });
  explainErrors(app, deps);
  app.addHook("onRoute", ({ url, method }) => paths.add(url, [method].flat()));
  const index = listRoutes(transcoder.routes);
  const served = {
    services: options.services,
    profiles: options.profiles ?? {},
    files: collectServiceFiles(services.map(({ service }) => service)),
    transcoder,
    index,
  };
  for (const mount of options.pages ?? []) await mount(app, served);
  if (!transcoder.routes.some(matchesRoot) && !app.hasRoute({ method: "GET", url: "/" })) {
    app.get("/", (_request, reply) => reply.type("text/plain").send(index));
  }
  addProbes(app, deps);
  await app.ready();
  return { paths, serve: app.routing as ListenerOptions["onPage"], close: () => app.close() };
}

/** Renders page errors like REST call errors. */
function explainErrors(app: FastifyInstance, { transcoder, requestIds, options }: PagesDeps): void {
  app.setNotFoundHandler(({ url }) => {
    const { path } = splitTarget(url);
    throw refuse("ROUTE_NOT_FOUND", `the path ${path} does not exist`, { path });
  });
  app.setErrorHandler((thrown, { raw }, reply) => {
    const error = toConnectError(options.explainFailure?.(thrown) ?? thrown);
    requestIds.mark(error, raw.headers[requestIdHeader]);
    const requestId = error.metadata.get(requestIdHeader);
    if (error.code === Code.Internal || findReason(error) === undefined)
      options.logger.error({ requestId, err: thrown, target: raw.url }, "request failed outside any call");
    const { method = "", url: target = "" } = raw;
    const { status, headers, body } = transcoder.renderFailure(error, { method, target });
    return reply.code(status).headers(Object.fromEntries(headers)).send(body);
  });
}

/** Adds the probes for supervisors and the Prometheus metrics. */
function addProbes(app: FastifyInstance, { health, metrics, options }: PagesDeps): void {
  app.get("/livez", (_request, reply) => reply.type("text/plain").send("alive\n"));
  app.get("/readyz", (_request, reply) =>
    reply
      .code(health.problem === undefined ? 200 : 503)
      .type("text/plain")
      .send(`${health.problem ?? "ready"}\n`),
  );
  app.get("/metrics", async (request, reply) => {
    await requireMetricsReader(options, request.headers.authorization);
    const { contentType, text } = await metrics.expose();
    return reply.type(contentType).send(text);
  });
}

/** @throws ROUTE_NOT_FOUND, ROLE_MISSING, SCOPE_MISSING, or whatever the access policy throws */
async function requireMetricsReader(
  { access, metricsAccess = "open" }: ServerOptions,
  authorization: string | undefined,
): Promise<void> {
  if (metricsAccess === "open") return;
  if (metricsAccess === "off" || access === undefined)
    throw refuse(
      "ROUTE_NOT_FOUND",
      "the path /metrics does not exist; start the server with --metrics to open it",
      {
        path: "/metrics",
      },
    );
  const caller = await chargeTo("tokens for /metrics", () => access.authenticate(authorization ?? null));
  requireScope("/metrics", caller, () => metricsScope);
  requireRole("/metrics", caller, ["auditor", "admin"]);
}

/** Returns whether an RPC route has the path "/". */
function matchesRoot({ template }: Route): boolean {
  const [first] = template.segments;
  return first === undefined || first.kind === "rest";
}

/** The page at the server's root: every REST call and its RPC. */
function listRoutes(routes: readonly Route[]): string {
  const lines = routes.map(
    ({ httpMethod, template, origin }) => `${httpMethod.padEnd(6)} ${template.text.padEnd(40)} ${origin}`,
  );
  return `REST calls and their RPCs:\n\n${lines.join("\n")}\n`;
}

/** The paths of pages and their methods. */
export type PathMethods = ReturnType<typeof createPathMethods>;

function createPathMethods() {
  const methodsOf = new Map<string, Set<string>>();
  const patterns: { readonly pattern: RegExp; readonly path: string }[] = [];
  const find = (path: string): ReadonlySet<string> | undefined =>
    methodsOf.get(path) ?? methodsOf.get(patterns.find(({ pattern }) => pattern.test(path))?.path ?? "");
  return {
    /** Returns whether a path was added. */
    has: (path: string): boolean => find(path) !== undefined,
    /** Adds a path in Fastify's form: "/console/:name". */
    add(path: string, methods: readonly string[]): void {
      if (!methodsOf.has(path) && path.includes(":")) patterns.push({ pattern: toPattern(path), path });
      const known = methodsOf.getOrInsert(path, new Set());
      for (const method of methods) known.add(method);
    },
    /**
     * Returns the methods of a path that does not support this one, formatted for the `allow` header. Undefined
     * if the path supports the method or was not added.
     */
    allowInstead(method: string, path: string): string | undefined {
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
