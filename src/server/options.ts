/** The options of a server, and the pages that it mounts. */
import type { DescFile } from "@bufbuild/protobuf";
import type { ServiceImplSpec } from "@connectrpc/connect";
import type { FastifyInstance } from "fastify";
import type { Logger } from "pino";
import type { Tracing } from "../calls/call-span.ts";
import type { ServiceProfiles } from "../calls/service-profile.ts";
import type { WireCodecs } from "../calls/wire-codec.ts";
import type { RoutingOrder } from "../transcoding/router.ts";
import type { Transcoder } from "../transcoding/transcoder.ts";
import type { AccessPolicy } from "./interceptors/access.ts";
import type { ExplainFailure } from "./interceptors/errors.ts";
import type { HintValue } from "./interceptors/value-hints.ts";
import type { ServerLimits } from "./limits.ts";
import type { Metrics } from "./metrics.ts";
import type { HeadPolicy } from "./request-head.ts";
import type { TlsFiles } from "./tls.ts";

/** The options of a server. */
export interface ServerOptions {
  /** Descriptors and implementations: `createServiceImplSpec(Service, implementation)` of Connect. */
  readonly services: readonly ServiceImplSpec[];
  /** Faster codecs of single RPCs. */
  readonly codecs?: WireCodecs;
  readonly logger: Logger;
  /** Facts that the protos of services do not state, if they are not ours. */
  readonly profiles?: ServiceProfiles;
  /** Decides which callers may make which calls. Without it every RPC is public and needs no `qsp.access`. */
  readonly access?: AccessPolicy;
  readonly limits: ServerLimits;
  /** Proxies whose X-Forwarded-For the server trusts: addresses and networks. */
  readonly trustedProxies?: readonly string[];
  /** Counts the calls; the server creates its own if left out. */
  readonly metrics?: Metrics;
  /** Traces the calls; they are not traced if left out. */
  readonly tracing?: Tracing | undefined;
  /** Certificates. Without any, connections are plaintext. */
  readonly tls?: readonly TlsFiles[];
  /** Other origins whose pages may call. */
  readonly corsOrigins?: readonly string[];
  /** Tells whether a request may name a host; any host if left out. */
  readonly isHostAllowed?: HeadPolicy["isHostAllowed"];
  /** Callers that may read /metrics: all ("open", the default), auditors and admins ("token"), none ("off"). */
  readonly metricsAccess?: "open" | "token" | "off";
  /** Pages besides the calls, such as a description of the calls. */
  readonly pages?: readonly Page[];
  /** Whether the path or the HTTP method decides first between REST templates; the method if left out. */
  readonly routingOrder?: RoutingOrder;
  /** Explains failures of the layers below the services. */
  readonly explainFailure?: ExplainFailure;
  /** Suggests values for fields whose rules list some; those that are spelt alike if left out. */
  readonly hintValue?: HintValue;
}

/** Mounts pages on the application before it begins to serve. A page at "/" replaces the list of REST calls. */
export type Page = (app: FastifyInstance, served: ServedCalls) => Promise<void>;

/** The calls that a page can describe. */
export interface ServedCalls {
  readonly services: readonly ServiceImplSpec[];
  readonly profiles: ServiceProfiles;
  /** Every file that reflection describes, imports first. */
  readonly files: readonly DescFile[];
  readonly transcoder: Transcoder;
  /** The list of REST calls, as "/" shows it. */
  readonly index: string;
}
