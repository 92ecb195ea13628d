import type { Sampling } from "./sampling.ts";

export const otlpProtocols = ["grpc", "http/protobuf"] as const;

export type OtlpProtocol = (typeof otlpProtocols)[number];

/** How spans are sent, and which calls have one. */
export interface TraceSettings {
  /** Base URL of the collector; undefined if the OTEL_… variables decide, which the exporter reads itself. */
  readonly endpoint: string | undefined;
  readonly protocol: OtlpProtocol;
  readonly sampling: Sampling;
  /** Service name, unless the OTEL_… variables set one. */
  readonly serviceName: string;
  readonly serviceVersion: string;
}
