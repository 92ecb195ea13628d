/** A probing.Probe server whose behaviour the test defines, and clients over every protocol. */
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

/** Every variant of the protocols. Only those over HTTP/2 support bidirectional streams. */
export const protocols = [
  "gRPC",
  "gRPC with JSON",
  "gRPC-Web over HTTP/1.1",
  "gRPC-Web over HTTP/2",
  "Connect over HTTP/1.1",
  "Connect over HTTP/2",
  "Connect with JSON",
] as const;

/** The name of a protocol. */
export type Protocol = (typeof protocols)[number];

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
  const options = connect(baseUrl);
  switch (protocol) {
    case "gRPC":
      return createClient(Probe, createGrpcTransport(options));
    case "gRPC with JSON":
      return createClient(Probe, createGrpcTransport({ ...options, useBinaryFormat: false }));
    case "gRPC-Web over HTTP/1.1":
      return createClient(Probe, createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }));
    case "gRPC-Web over HTTP/2":
      return createClient(Probe, createGrpcWebTransport({ ...options, httpVersion: "2" }));
    case "Connect over HTTP/1.1":
      return createClient(Probe, createConnectTransport({ baseUrl, httpVersion: "1.1" }));
    case "Connect over HTTP/2":
      return createClient(Probe, createConnectTransport({ ...options, httpVersion: "2" }));
    case "Connect with JSON":
      return createClient(
        Probe,
        createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false }),
      );
  }
}
