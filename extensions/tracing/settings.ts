/** The settings of tracing, as an operator gives them. */
import {
  type AddedSettings,
  defineChoice,
  defineInteger,
  defineRatio,
  defineServiceUrl,
} from "../../src/config/setting.ts";

export const otlpEndpoint = defineServiceUrl(
  "otlp-endpoint",
  "Collector of OpenTelemetry that receives traces of calls, such as http://localhost:4317; by default the OTEL_EXPORTER_OTLP_… variables decide, and without them there are no traces.",
);

export const otlpProtocol = defineChoice(
  "otlp-protocol",
  "auto",
  ["auto", "grpc", "http/protobuf"],
  "Protocol of the collector; auto takes OTEL_EXPORTER_OTLP_PROTOCOL, or http/protobuf.",
);

export const traceSampleRatio = defineRatio(
  "trace-sample-ratio",
  "Share of calls to trace, from 0 to 1; by default OTEL_TRACES_SAMPLER decides, and without it all calls are traced.",
);

export const maxFollowedTraces = defineInteger(
  "max-followed-traces",
  "10",
  0,
  1_000_000,
  "Most calls a second that a server traces beside that share, because their callers record a trace (traceparent).",
);

/** In the order in which the help shows them. */
export const settings: AddedSettings = {
  after: "cors-origins",
  settings: [otlpEndpoint, otlpProtocol, traceSampleRatio, maxFollowedTraces],
};
