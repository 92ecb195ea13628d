import { describe, expect, it } from "vitest";
import { ConfigError, readConfig } from "../../../src/config.ts";
import { settings } from "../settings.ts";
import { traceSettings } from "../trace-settings.ts";

function read(args: readonly string[], env: Record<string, string> = {}) {
  return traceSettings(readConfig(args, env, [settings]), env);
}

const endpoint = "http://collector.example:4318";
const variables = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint };

describe("the tracing settings", () => {
  it("leave tracing off until a collector is configured", () => {
    expect(read([])).toBeUndefined();
    expect(read(["--trace-sample-ratio", "1"])).toBeUndefined();
  });

  it.each([{ OTEL_SDK_DISABLED: "true" }, { OTEL_TRACES_EXPORTER: "none" }])(
    "leave tracing off if a variable disables it: %o",
    (env) => expect(read([], { ...variables, ...env })).toBeUndefined(),
  );

  it("default to all calls over http/protobuf, and to following ten callers per second", () => {
    expect(read(["--otlp-endpoint", endpoint])).toMatchObject({
      endpoint,
      protocol: "http/protobuf",
      sampling: { ratio: 1, followsCallers: true, maxFollowedPerSecond: 10 },
    });
  });

  it("leave the endpoint variables to the exporter, which reads all of them", () => {
    expect(read([], { ...variables, OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" })).toMatchObject({
      endpoint: undefined,
      protocol: "grpc",
    });
  });

  it.each([
    ["always_on", 1, false],
    ["always_off", 0, false],
    ["traceidratio", 0.2, false],
    ["parentbased_always_on", 1, true],
    ["parentbased_always_off", 0, true],
    ["parentbased_traceidratio", 0.2, true],
  ] as const)("accept the sampler %s", (name, ratio, followsCallers) => {
    const env = { ...variables, OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: "0.2" };
    expect(read([], env)?.sampling).toMatchObject({ ratio, followsCallers });
  });

  it("prefer our own ratio setting to the variables", () => {
    const env = { ...variables, OTEL_TRACES_SAMPLER: "parentbased_always_off" };
    expect(read(["--trace-sample-ratio", "0.5"], env)?.sampling).toMatchObject({ ratio: 0.5 });
  });

  it.each([
    [["--trace-sample-ratio", "2"], {}, /--trace-sample-ratio: "2" is not a number from 0 to 1/],
    [["--otlp-endpoint", "collector:4317"], {}, /--otlp-endpoint must be a URL/],
    [["--otlp-endpoint", "https://u:hunter2@c:1"], {}, /OTEL_EXPORTER_OTLP_HEADERS/],
    [[], { OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" }, /"http\/json" is not supported; use grpc or/],
    [[], { OTEL_TRACES_SAMPLER: "jaeger_remote" }, /OTEL_TRACES_SAMPLER: "jaeger_remote" is not supported/],
    [
      [],
      { OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "most" },
      /OTEL_TRACES_SAMPLER_ARG: "most" is not a number/,
    ],
  ])("reject %o with %o", (args, env, sentence) => {
    const reading = (): unknown => read(args, { ...variables, ...(env as Record<string, string>) });
    expect(reading).toThrow(ConfigError);
    expect(reading).toThrow(sentence);
    expect(reading).not.toThrow(/hunter2/);
  });
});
