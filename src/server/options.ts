import type { DescFile } from "@bufbuild/protobuf";
import type { ServiceImplSpec } from "@connectrpc/connect";
import type { FastifyInstance } from "fastify";
import type { Logger } from "pino";
import type { Tracing } from "../calls/call-span.ts";
import type { ServiceProfiles } from "../calls/service-profile.ts";
import type { PathConvention } from "../transcoding/router.ts";
import type { Transcoder } from "../transcoding/transcoder.ts";
import type { AccessPolicy } from "./interceptors/access.ts";
import type { ExplainFailure } from "./interceptors/errors.ts";
import type { HintValue } from "./interceptors/value-hints.ts";
import type { ServerLimits } from "./limits.ts";
import type { Metrics } from "./metrics.ts";
import type { HeadPolicy } from "./request-head.ts";
import type { TlsFiles } from "./tls.ts";

export interface ServerOptions {
  /** Descriptors and implementations: `createServiceImplSpec(Service, implementation)` from Connect. */
  readonly services: readonly ServiceImplSpec[];
  readonly logger: Logger;
  /** Access and limits for third-party services, whose protos do not declare them. */
  readonly profiles?: ServiceProfiles;
  /** Decides who may make which calls. If omitted, every RPC is public and needs no `qsp.access`. */
  readonly access?: AccessPolicy;
  readonly limits: ServerLimits;
  /** Proxies whose X-Forwarded-For the server trusts: addresses and networks. */
  readonly trustedProxies?: readonly string[];
  /** Counts the calls. If omitted, the server creates its own. */
  readonly metrics?: Metrics;
  /** Traces the calls. If omitted, they are not traced. */
  readonly tracing?: Tracing | undefined;
  /** Certificates. If omitted, connections are plaintext. */
  readonly tls?: readonly TlsFiles[];
  /** Other origins whose pages may call (CORS). */
  readonly corsOrigins?: readonly string[];
  /** Returns whether a request may name a host. If omitted, any host is allowed. */
  readonly isHostAllowed?: HeadPolicy["isHostAllowed"];
  /**
   * Who may read /metrics: everyone ("open", the default), auditors and admins ("token"), or no one ("off").
   */
  readonly metricsAccess?: "open" | "token" | "off";
  /** Pages besides the calls, such as an API description. */
  readonly pages?: readonly Page[];
  /** How REST paths match templates. Default: as in Google's transcoders. */
  readonly pathConvention?: PathConvention;
  /** Explains failures in the layers below the services. */
  readonly explainFailure?: ExplainFailure;
  /** Suggests values for fields whose rules list the allowed ones. Default: similar spelling. */
  readonly hintValue?: HintValue;
}

/**
 * Mounts pages on the application before it starts to serve. A page at "/" replaces the list of REST calls.
 */
export type Page = (app: FastifyInstance, served: ServedCalls) => Promise<void>;

/** The calls that a page can describe. */
export interface ServedCalls {
  readonly services: readonly ServiceImplSpec[];
  readonly profiles: ServiceProfiles;
  /** Every file that reflection describes, imports first. */
  readonly files: readonly DescFile[];
  readonly transcoder: Transcoder;
  /** The list of REST calls, as shown at "/". */
  readonly index: string;
}
