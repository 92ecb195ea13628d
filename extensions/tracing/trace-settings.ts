/** Combines our tracing settings with the standard OpenTelemetry variables. */
import { type Config, ConfigError } from "../../src/config.ts";
import { readVersion } from "../../src/program-files.ts";
import type { Sampling } from "./sampling.ts";
import { maxFollowedTraces, otlpEndpoint, otlpProtocol, traceSampleRatio } from "./settings.ts";
import { type OtlpProtocol, otlpProtocols, type TraceSettings } from "./trace-options.ts";

type Environment = Readonly<Record<string, string | undefined>>;
type TraceConfig = Pick<Config, "valueFor">;

/**
 * Builds the tracing options (OpenTelemetry, "Environment Variable Specification"). Our own settings take
 * precedence.
 *
 * @returns undefined if no collector is configured or a variable turns tracing off
 * @throws ConfigError
 */
export function traceSettings({ valueFor }: TraceConfig, env: Environment): TraceSettings | undefined {
  const [endpoint, protocol] = [valueFor(otlpEndpoint), valueFor(otlpProtocol)];
  const isNamed =
    endpoint !== "" || Boolean(env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || env.OTEL_EXPORTER_OTLP_ENDPOINT);
  if (!isNamed || env.OTEL_SDK_DISABLED?.toLowerCase() === "true" || env.OTEL_TRACES_EXPORTER === "none")
    return undefined;
  return {
    endpoint: endpoint === "" ? undefined : endpoint,
    protocol: protocol === "auto" ? readProtocol(env) : protocol,
    sampling: {
      ...readSampling(valueFor(traceSampleRatio), env),
      maxFollowedPerSecond: valueFor(maxFollowedTraces),
    },
    serviceName: "qsp",
    serviceVersion: readVersion(),
  };
}

function readProtocol(env: Environment): OtlpProtocol {
  const name = env.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL
    ? "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
    : "OTEL_EXPORTER_OTLP_PROTOCOL";
  const given = env[name] || "http/protobuf";
  const known = otlpProtocols.find((protocol) => protocol === given);
  if (known !== undefined) return known;
  throw new ConfigError(`${name}: "${given}" is not supported; use ${otlpProtocols.join(" or ")}`);
}

/** Samplers of the specification. The ones that are not parent-based ignore the caller's decision. */
function readSampling(
  ratioGiven: number | undefined,
  env: Environment,
): Pick<Sampling, "ratio" | "followsCallers"> {
  const name = env.OTEL_TRACES_SAMPLER || "parentbased_always_on";
  const [, parent, kind] = /^(parentbased_)?(always_on|always_off|traceidratio)$/.exec(name) ?? [];
  if (kind === undefined)
    throw new ConfigError(
      `OTEL_TRACES_SAMPLER: "${name}" is not supported; use always_on, always_off or traceidratio, optionally with the prefix parentbased_`,
    );
  const followsCallers = parent !== undefined;
  if (ratioGiven !== undefined) return { ratio: ratioGiven, followsCallers };
  if (kind !== "traceidratio") return { ratio: kind === "always_on" ? 1 : 0, followsCallers };
  const ratio = Number(env.OTEL_TRACES_SAMPLER_ARG || "1");
  if (ratio >= 0 && ratio <= 1) return { ratio, followsCallers };
  throw new ConfigError(
    `OTEL_TRACES_SAMPLER_ARG: "${env.OTEL_TRACES_SAMPLER_ARG}" is not a number from 0 to 1`,
  );
}
