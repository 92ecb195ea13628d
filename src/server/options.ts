/** What a server is made of. */
import type { DescFile } from "@bufbuild/protobuf";
import type { ServiceImplSpec } from "@connectrpc/connect";
import type { FastifyInstance } from "fastify";
import type { Logger } from "pino";
import type { RoutingOrder } from "../transcoding/router.ts";
import type { Transcoder } from "../transcoding/transcoder.ts";
import type { AccessPolicy } from "./interceptors/access.ts";
import type { ExplainFailure } from "./interceptors/errors.ts";
import type { ServerLimits } from "./limits.ts";
import type { Metrics } from "./metrics.ts";
import type { HeadPolicy } from "./request-head.ts";
import type { TlsFiles } from "./tls.ts";

/** What a server is made of. */
export interface ServerOptions {
  /** Descriptors and implementations: `createServiceImplSpec(Service, implementation)` of Connect. */
  readonly services: readonly ServiceImplSpec[];
  readonly logger: Logger;
  /** Who may call what; without it every RPC is public and need not say so. */
  readonly access?: AccessPolicy;
  readonly limits: ServerLimits;
  /** Proxies whose X-Forwarded-For is believed: addresses and networks. */
  readonly trustedProxies?: readonly string[];
  /** Where calls are counted; its own if left out. */
  readonly metrics?: Metrics;
  /** Certificates; without any, connections are in the clear. */
  readonly tls?: readonly TlsFiles[];
  /** Origins beside our own whose pages may call. */
  readonly corsOrigins?: readonly string[];
  /** Tells whether a request may name a host; without it any host will do. */
  readonly isHostAllowed?: HeadPolicy["isHostAllowed"];
  /** Who may read /metrics: anyone ("open", the default), auditors and admins ("token"), nobody ("off"). */
  readonly metricsAccess?: "open" | "token" | "off";
  /** Pages beside the calls, such as a description of these. */
  readonly pages?: readonly Page[];
  /** Whether the path or the method decides first between REST templates; the method if left out. */
  readonly routingOrder?: RoutingOrder;
  /** Knows failures of what the services are built on. */
  readonly explainFailure?: ExplainFailure;
}

/** Mounts pages on the application before it begins to serve. One at "/" takes the place of the list of REST calls. */
export type Page = (app: FastifyInstance, served: ServedCalls) => Promise<void>;

/** What a page can tell of. */
export interface ServedCalls {
  readonly services: readonly ServiceImplSpec[];
  /** Every file that reflection describes, imports first. */
  readonly files: readonly DescFile[];
  readonly transcoder: Transcoder;
  /** The list of REST calls, as "/" shows it. */
  readonly index: string;
}
