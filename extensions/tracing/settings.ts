/** Command-line settings for tracing. */
import {
  type AddedSettings,
  defineChoice,
  defineInteger,
  defineRatio,
  defineServiceUrl,
} from "../../src/config/setting.ts";

export const otlpEndpoint = defineServiceUrl(
  "otlp-endpoint",
  "OpenTelemetry collector for call traces, such as http://localhost:4317. Default: the OTEL_EXPORTER_OTLP_… variables; without them, tracing is off.",
);

export const otlpProtocol = defineChoice(
  "otlp-protocol",
  "auto",
  ["auto", "grpc", "http/protobuf"],
  "Protocol of the collector; auto uses OTEL_EXPORTER_OTLP_PROTOCOL, or http/protobuf if it is unset.",
);

export const traceSampleRatio = defineRatio(
  "trace-sample-ratio",
  "Share of calls to trace, from 0 to 1. Default: OTEL_TRACES_SAMPLER; without it, all calls are traced.",
);

export const maxFollowedTraces = defineInteger(
  "max-followed-traces",
  { fallback: 10, min: 0, max: 1_000_000 },
  "Maximum calls per second that a server traces in addition, because the caller records the trace (traceparent).",
);

/** In the order of the help text. */
export const settings: AddedSettings = {
  after: "cors-origins",
  settings: [otlpEndpoint, otlpProtocol, traceSampleRatio, maxFollowedTraces],
};
