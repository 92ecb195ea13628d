/** A probing.Probe server whose behaviour the test defines, and clients over every protocol. */
import { once } from "node:events";
import type { DescService } from "@bufbuild/protobuf";
import {
  type Client,
  createClient,
  createServiceImplSpec,
  type ServiceImpl,
  type Transport,
} from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import { onTestFinished } from "vitest";
import { Access } from "#gen/qsp/access_pb.ts";
import type { ServiceProfile } from "../../src/calls/service-profile.ts";
import type { AccessPolicy } from "../../src/server/interceptors/access.ts";
import type { ServerLimits } from "../../src/server/limits.ts";
import { Probe } from "../gen/probing/probe_pb.ts";
import type { AtEnd } from "../support/at-end.ts";
import { type BareOptions, type LocalServer, serve } from "./serve.ts";

/** Handlers that the test defines; omitted ones echo their requests. */
export type ProbeBehaviour = Partial<ServiceImpl<typeof Probe>>;

/** Echoes requests. */
export const echo: ServiceImpl<typeof Probe> = {
  ask: (item) => item,
  look: (item) => item,
  async *watch(item) {
    yield item;
  },
  async collect(items) {
    let text = "";
    for await (const item of items) text += item.text;
    return { text };
  },
  async *chat(items) {
    yield* items;
  },
};

/** Serves until the test has finished, or until `atEnd`. */
export function serveProbe(
  behaviour: ProbeBehaviour = {},
  limits: Partial<ServerLimits> = {},
  { atEnd, ...options }: Partial<BareOptions> & { readonly atEnd?: AtEnd } = {},
): Promise<LocalServer> {
  const services = [createServiceImplSpec<typeof Probe>(Probe, { ...echo, ...behaviour })];
  return serve({ services, limits: { maxDrainMs: 0, ...limits }, ...options }, atEnd);
}

/** A caller with a token. */
export const ada = {
  role: "user",
  subject: "ada",
  issuedAt: new Date(0),
  expiresAt: new Date(8.64e15),
} as const;

/** Gives every call of a service the same access, as its own proto cannot. */
export function profilesWith(
  access: Access,
  { typeName, methods }: DescService = Probe,
  restStyle: ServiceProfile["restStyle"] = "own",
): Readonly<Record<string, ServiceProfile>> {
  const rpcs = methods.map(({ name }) => [name, { access, scope: "probe.use", comment: `${name}.` }]);
  return { [typeName]: { restStyle, comment: "Probes.", rpcs: Object.fromEntries(rpcs) } };
}

/** Serves callers whom the test admits. */
export function serveAdmitting(
  behaviour: ProbeBehaviour,
  authenticate: AccessPolicy["authenticate"],
  options: Partial<BareOptions> = {},
): Promise<LocalServer> {
  const access = { mode: "token", authenticate } as const;
  return serveProbe(behaviour, {}, { access, profiles: profilesWith(Access.AUTHENTICATED), ...options });
}

/** Watches that send nothing and last until their callers disconnect. */
export function makeWatches() {
  const begun: AbortSignal[] = [];
  let ended = 0;
  const behaviour: ProbeBehaviour = {
    // biome-ignore lint/correctness/useYield: it sends nothing
    async *watch(_item, { signal }) {
      begun.push(signal);
      if (!signal.aborted) await once(signal, "abort");
      ended += 1;
    },
  };
  return { behaviour, begun, countRunning: () => begun.length - ended };
}

/** Serves until the test has finished, and counts the calls that reach a handler. */
export async function serveCounted(options: Partial<BareOptions> = {}) {
  let handled = 0;
  const count = <T>(item: T): T => {
    handled += 1;
    return item;
  };
  const handlers: ProbeBehaviour = {
    ask: count,
    look: count,
    async *watch(item) {
      yield count(item);
    },
  };
  return { ...(await serveProbe(handlers, {}, options)), handled: () => handled };
}

type Connection = ReturnType<typeof connect>;
const transports = {
  gRPC: (options: Connection) => createGrpcTransport(options),
  "gRPC with JSON": (options: Connection) => createGrpcTransport({ ...options, useBinaryFormat: false }),
  "gRPC-Web over HTTP/1.1": ({ baseUrl }: Connection) =>
    createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
  "gRPC-Web over HTTP/2": (options: Connection) => createGrpcWebTransport({ ...options, httpVersion: "2" }),
  "Connect over HTTP/1.1": ({ baseUrl }: Connection) =>
    createConnectTransport({ baseUrl, httpVersion: "1.1" }),
  "Connect over HTTP/2": (options: Connection) => createConnectTransport({ ...options, httpVersion: "2" }),
  "Connect with JSON": ({ baseUrl }: Connection) =>
    createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false }),
};

/** The name of a variant of a protocol. Only those over HTTP/2 support bidirectional streams. */
export type Protocol = keyof typeof transports;
export const protocols = Object.keys(transports) as Protocol[];

/** The head of a call of probing.Probe over HTTP/2. */
export const headOf = (method: string, type = "application/grpc") => ({
  ":method": "POST",
  ":path": `/probing.Probe/${method}`,
  "content-type": type,
});

/** A connection of its own, which closes with the test. */
function connect(baseUrl: string) {
  const sessionManager = new Http2SessionManager(baseUrl);
  onTestFinished(() => sessionManager.abort());
  return { baseUrl, sessionManager };
}

/** gRPC over a connection of its own, which closes with the test. */
export const connectGrpc = (url: string): Transport => createGrpcTransport(connect(url));

/** A client with its own connection, which closes with the test. */
export function connectProbe(protocol: Protocol, baseUrl: string): Client<typeof Probe> {
  return createClient(Probe, transports[protocol](connect(baseUrl)));
}
