import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type DescMethod, type DescService, getOption, hasOption } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { http } from "#gen/google/api/annotations_pb.ts";
import { idempotency_key } from "#gen/qsp/idempotency_pb.ts";
import { readGatewayOptions } from "../../envoy/gateway-options.ts";
import { renderEdge } from "../../envoy/render.ts";

const root = join(import.meta.dirname, "../..");
const read = (file: string): string => readFileSync(join(root, "envoy", file), "utf8");
/** Configurations with our servers behind Envoy. */
const files = ["envoy.yaml", "services.yaml"] as const;
const allFiles = [...files, "protect.yaml"] as const;

/** Any part of a configuration. */
// biome-ignore lint/suspicious/noExplicitAny: tests access arbitrary parts of parsed YAML
type Part = any;

const managerOf = (listener: Part): Part => listener.filter_chains[0].filters[0].typed_config;
const listenersOf = (file: string): Part[] => parse(read(file)).static_resources.listeners;

describe.each(allFiles)("%s", (file) => {
  it("exposes its admin interface only on loopback", () => {
    expect(parse(read(file)).admin.address.socket_address.address).toBe("127.0.0.1");
  });

  it("is rendered with different addresses and paths, and otherwise as committed", () => {
    const settings = {
      address: "127.0.0.1",
      port: 9000,
      adminPort: 9100,
      backends: ["127.0.0.1:9200", "[::1]:9201"],
      certificateConfig: "/elsewhere/certificate.yaml",
      metadataFilter: "/elsewhere/metadata.lua",
    };
    const expected = parse(
      read(file).replaceAll(/envoy\/(certificate\.yaml|metadata\.lua)/g, "/elsewhere/$1"),
    );
    expected.admin.address.socket_address.port_value = 9100;
    expected.static_resources.listeners.forEach((listener: Part, index: number) => {
      listener.address = addressOf("127.0.0.1", 9000 + index);
    });
    for (const cluster of expected.static_resources.clusters) {
      const endpoints = [addressOf("127.0.0.1", 9200), addressOf("::1", 9201)];
      cluster.load_assignment.endpoints = [
        { lb_endpoints: endpoints.map((address) => ({ endpoint: { address } })) },
      ];
    }
    expect(parse(renderEdge(read(file), settings))).toEqual(expected);
  });
});

describe("services.yaml", () => {
  const [edge] = listenersOf("envoy.yaml");
  it.each(listenersOf("services.yaml"))(
    "has a listener $name that differs from envoy.yaml only in its routes",
    (listener) => {
      const { route_config: _own, ...manager } = managerOf(listener);
      const { route_config: _other, ...expected } = managerOf(edge);
      expect(manager).toEqual(expected);
      expect(listener.filter_chains[0].transport_socket).toEqual(edge.filter_chains[0].transport_socket);
    },
  );

  it("has the same settings around its listeners as envoy.yaml", () => {
    const { static_resources: _own, ...frame } = parse(read("services.yaml"));
    const { static_resources: _other, ...expected } = parse(read("envoy.yaml"));
    expect(frame).toEqual(expected);
  });

  it("has clusters that differ from those in envoy.yaml only by name and servers", () => {
    const strip = ({ name: _name, load_assignment: _servers, ...rest }: Part): Part => rest;
    const [servers, gateways] = parse(read("envoy.yaml")).static_resources.clusters.map(strip);
    const clusters: Part[] = parse(read("services.yaml")).static_resources.clusters;
    expect(clusters.map(({ name }) => name)).toEqual(["servers", "keys", "gateways"]);
    expect(clusters.map(strip)).toEqual([servers, servers, gateways]);
  });
});

interface Request {
  readonly method: string;
  readonly path: string;
  readonly headers?: readonly string[];
}

/** How Envoy handles a call, by the route's name without its servers. */
type Kind = "watch" | "stream" | "read" | "call" | "repeatable";

let services: DescService[];
beforeAll(async () => {
  const modules: Record<string, DescService>[] = await Promise.all(
    globSync("gen/**/*_pb.ts", { cwd: root }).map((path) => import(join(root, path))),
  );
  // Google's protos import this service, which no server here offers.
  const imported = "google.longrunning.Operations";
  services = modules
    .flatMap((module) => Object.values(module))
    .filter(({ kind, typeName }) => kind === "service" && typeName !== imported);
});

describe.each(files)("the routes of %s", (file) => {
  const { routes }: { routes: Part[] } = managerOf(listenersOf(file)[0]).route_config.virtual_hosts[0];
  const routeOf = (request: Request): Part => routes.find(({ match }) => matches(match, request));

  it("match what the protos require, for every RPC and every REST call", () => {
    const requests = services.flatMap(({ methods }) => methods.flatMap(requestsOf));
    expect(requests.length).toBeGreaterThan(100);
    const found = requests.map(({ request }) => `${lineOf(request)}: ${kindOf(routeOf(request).name)}`);
    expect(found).toEqual(requests.map(({ request, kind }) => `${lineOf(request)}: ${kind}`));
  });

  it("direct each service to its servers", () => {
    const clusterOf = ({ typeName }: DescService): string => {
      if (/^(vpn|wireguard)\./.test(typeName)) return "gateways";
      return file === "services.yaml" && /^(kms|google\.cloud)\./.test(typeName) ? "keys" : "servers";
    };
    const requests = services.flatMap((service) =>
      service.methods.flatMap(requestsOf).map(({ request }) => ({ request, cluster: clusterOf(service) })),
    );
    const found = requests.map(({ request }) => `${lineOf(request)}: ${routeOf(request).route.cluster}`);
    expect(found).toEqual(requests.map(({ request, cluster }) => `${lineOf(request)}: ${cluster}`));
  });

  it.each([
    { kind: "watch", isSafe: true, timeout: "0s" },
    { kind: "stream", isSafe: false, timeout: "0s" },
    { kind: "read", isSafe: true, timeout: "35s" },
    { kind: "repeatable", isSafe: true, timeout: "35s" },
    { kind: "call", isSafe: false, timeout: "35s" },
  ])(
    "of kind $kind are retried after a reset: $isSafe; time out after $timeout",
    ({ kind, isSafe, timeout }) => {
      const ofKind = routes.filter(({ name }) => kindOf(name) === kind);
      expect(ofKind.length).toBeGreaterThan(0);
      for (const { route } of ofKind) {
        const conditions: string[] = route.retry_policy.retry_on.split(",");
        expect(conditions).toEqual(
          expect.arrayContaining(["connect-failure", "refused-stream", "reset-before-request"]),
        );
        expect([conditions.includes("reset"), conditions.includes("unavailable")]).toEqual([isSafe, isSafe]);
        expect([route.timeout, route.retry_policy.num_retries]).toEqual([timeout, 2]);
      }
    },
  );
});

/** All ways to call an RPC, and how Envoy must handle each. */
function requestsOf(method: DescMethod): { request: Request; kind: Kind }[] {
  const isRead = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
  const rpc: Request = { method: "POST", path: `/${method.parent.typeName}/${method.name}` };
  const rest = restOf(method);
  if (method.methodKind !== "unary")
    return [rpc, ...rest].map((request) => ({ request, kind: isRead ? "watch" : "stream" }));
  if (isRead) return [rpc, { ...rpc, method: "GET" }, ...rest].map((request) => ({ request, kind: "read" }));
  // Third-party protos do not declare read-only calls. GET and QUERY are (RFC 9110, section 9.2.1; RFC 10008).
  const isSafe = (request: Request): boolean => ["GET", "QUERY"].includes(request.method);
  const reads = rest.filter(isSafe);
  const calls = [rpc, ...rest.filter((request) => !isSafe(request))];
  return [
    ...reads.map((request) => ({ request, kind: "read" as const })),
    ...calls.flatMap((request) => [
      { request, kind: "call" as const },
      {
        request: { ...request, headers: ["idempotency-key"] },
        kind: getOption(method, idempotency_key) ? ("repeatable" as const) : ("call" as const),
      },
    ]),
  ];
}

function restOf(method: DescMethod): Request[] {
  const options = method.proto.options;
  if (options === undefined || !hasOption(method, http)) return [];
  const rule = getOption(method, http);
  return [rule, ...rule.additionalBindings].map(({ pattern }) => {
    if (pattern.case === undefined) throw new Error(`${method.name} has no pattern`);
    const [httpMethod, path] =
      pattern.case === "custom" ? [pattern.value.kind, pattern.value.path] : [pattern.case, pattern.value];
    return { method: httpMethod.toUpperCase(), path: path.replaceAll(/\{[^}]+\}/g, "a%2Fb") };
  });
}

function lineOf({ method, path, headers = [] }: Request): string {
  return [method, path, ...headers].join(" ");
}

function kindOf(routeName: string): string {
  return routeName.replace(/^(vpn|wireguard|kms|google)-/, "");
}

/** Whether Envoy selects a route, with the few match types that the files use. */
function matches(match: Part, { method, path, headers: present = [] }: Request): boolean {
  const { prefix, path: exact, safe_regex: regex, headers = [], ...others } = match;
  if (Object.keys(others).length > 0) throw new Error(`not known: ${Object.keys(others)}`);
  if (prefix !== undefined && !path.startsWith(prefix)) return false;
  if (exact !== undefined && path !== exact) return false;
  if (regex !== undefined && !isFullMatch(regex.regex, path)) return false;
  return headers.every(({ name, string_match: text, present_match: isPresent }: Part) =>
    isPresent ? present.includes(name) : name === ":method" && isFullMatch(text.safe_regex.regex, method),
  );
}

function isFullMatch(regex: string, text: string): boolean {
  return new RegExp(`^(?:${regex})$`).test(text);
}

function addressOf(address: string, port: number): Part {
  return { socket_address: { address, port_value: port } };
}

const argsOfServers = (args: readonly string[], env: NodeJS.ProcessEnv = {}): readonly string[] =>
  readGatewayOptions(args, env).serverArgs;

describe("the gateway", () => {
  it("gives all its servers one issuer URL, the address that clients use", () => {
    expect(argsOfServers(["--port", "9443", "--", "--auth", "token"])).toEqual([
      ...["--issuer-url", "https://localhost:9443"],
      ...["--auth", "token"],
    ]);
  });

  it("keeps an explicit issuer URL", () => {
    const args = ["--issuer-url=https://qsp.example.com"];
    expect(argsOfServers(["--", ...args])).toEqual(args);
    expect(argsOfServers([], { QSP_ISSUER_URL: "https://qsp.example.com" })).toEqual([]);
  });
});
