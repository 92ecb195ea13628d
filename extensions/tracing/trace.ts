/** Turns tracing on for servers whose settings name a collector. */
import { randomUUID } from "node:crypto";
import type { StartTracing } from "../../src/open-observability.ts";
import { traceSettings } from "./trace-settings.ts";

export const trace: StartTracing = async (config, logger) => {
  const settings = traceSettings(config, process.env);
  if (settings === undefined) return undefined;
  // Loaded on demand: the SDK costs time and memory.
  const { openTracing } = await import("./open-tracing.ts");
  return openTracing(settings, { logger, instanceId: randomUUID() });
};
