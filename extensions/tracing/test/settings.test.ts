import { describe, expect, it } from "vitest";
import { ConfigError, readConfig } from "../../../src/config.ts";
import { createSampler, type Sampling } from "../sampling.ts";
import { settings } from "../settings.ts";
import { traceSettings } from "../trace-settings.ts";

function read(args: readonly string[], env: Record<string, string> = {}) {
  return traceSettings(readConfig(args, env, [settings]), env);
}

const endpoint = "http://collector.example:4318";
const byRatio = { OTEL_TRACES_SAMPLER: "traceidratio" };
const variables = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint };

describe("the tracing settings", () => {
  it("leave tracing off until a collector is configured", () => {
    expect(read([])).toBeUndefined();
    expect(read(["--trace-sample-ratio", "1"])).toBeUndefined();
  });

  const off = [{ OTEL_SDK_DISABLED: "true" }, { OTEL_TRACES_EXPORTER: "none" }];
  it.each(off)("leave tracing off if a variable disables it: %o", (env) => {
    expect(read([], { ...variables, ...env })).toBeUndefined();
  });

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
    [[], { ...byRatio, OTEL_TRACES_SAMPLER_ARG: "most" }, /OTEL_TRACES_SAMPLER_ARG: "most" is not a number/],
  ])("reject %o with %o", (args, env, sentence) => {
    const reading = (): unknown => read(args, { ...variables, ...(env as Record<string, string>) });
    expect(reading).toThrow(ConfigError);
    expect(reading).toThrow(sentence);
    expect(reading).not.toThrow(/hunter2/);
  });
});

/** Counts how many of 1,000 calls within a second are sampled, on a fake clock. */
function countChosen(sampling: Partial<Sampling>, parent: boolean | undefined, seconds = 1) {
  let nowMs = 0;
  let calls = 0;
  // The random numbers run through all thousandths in turn.
  const chance = (): number => (calls % 1000) / 1000;
  const settings = { ratio: 0, followsCallers: true, maxFollowedPerSecond: 10, ...sampling };
  const sampler = createSampler(settings, chance, () => nowMs);
  let chosen = 0;
  for (; calls < 1000 * seconds; calls += 1) {
    nowMs += 1;
    if (sampler.isChosen(parent)) chosen += 1;
  }
  return { chosen, limited: sampler.limited };
}

describe("sampling", () => {
  it("selects the configured share of calls without a caller's trace", () => {
    expect(countChosen({ ratio: 0.25 }, undefined).chosen).toBe(250);
    expect(countChosen({ ratio: 1 }, undefined).chosen).toBe(1000);
    expect(countChosen({ ratio: 0 }, undefined).chosen).toBe(0);
  });

  it("follows callers that record their traces up to a rate limit, because a hostile caller always does", () => {
    const { chosen, limited } = countChosen({ maxFollowedPerSecond: 10 }, true, 10);
    // A burst of ten, and ten for each second.
    expect(chosen).toBeGreaterThanOrEqual(100);
    expect(chosen).toBeLessThanOrEqual(110);
    expect(limited).toBe(10_000 - chosen);
  });

  it("follows no caller with a limit of 0", () => {
    expect(countChosen({ maxFollowedPerSecond: 0 }, true)).toEqual({ chosen: 0, limited: 1000 });
  });

  it("applies the share to calls beyond the limit", () => {
    const { chosen } = countChosen({ ratio: 0.5 }, true);
    expect(chosen).toBeGreaterThanOrEqual(500);
    expect(chosen).toBeLessThanOrEqual(520);
  });

  it("skips calls whose callers do not record them", () => {
    expect(countChosen({ ratio: 1 }, false).chosen).toBe(0);
  });

  it("ignores the caller's decision if the sampler is not parent-based", () => {
    expect(countChosen({ ratio: 0, followsCallers: false }, true).chosen).toBe(0);
    expect(countChosen({ ratio: 1, followsCallers: false }, false).chosen).toBe(1000);
  });
});
