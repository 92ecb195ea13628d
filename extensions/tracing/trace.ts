/** Traces the calls of a server whose settings name a collector. */
import { randomUUID } from "node:crypto";
import type { StartTracing } from "../../src/open-observability.ts";
import { traceSettings } from "./trace-settings.ts";

export const trace: StartTracing = async (config, logger) => {
  const settings = traceSettings(config, process.env);
  if (settings === undefined) return undefined;
  // The SDK takes time and memory, which only those pay who want traces.
  const { openTracing } = await import("./open-tracing.ts");
  return openTracing(settings, { logger, instanceId: randomUUID() });
};
