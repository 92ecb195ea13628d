/** The settings of tracing. */
import type { Sampling } from "./sampling.ts";

/** The protocols of OTLP. */
export const otlpProtocols = ["grpc", "http/protobuf"] as const;

/** A protocol of OTLP. */
export type OtlpProtocol = (typeof otlpProtocols)[number];

/** How spans are sent, and of which calls. */
export interface TraceSettings {
  /** The base URL of the collector; undefined to let the OTEL_… variables decide, which the exporter reads itself. */
  readonly endpoint: string | undefined;
  readonly protocol: OtlpProtocol;
  readonly sampling: Sampling;
  /** The name of the service, unless the OTEL_… variables name it. */
  readonly serviceName: string;
  readonly serviceVersion: string;
}
