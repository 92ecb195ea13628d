/** What this extension adds to the program. */
import type { Extension } from "../../src/extension.ts";

export const tracing: Extension = {
  name: "tracing",
  title: "Traces",
  summary: "operators who collect traces with OpenTelemetry",
  settings: async () => (await import("./settings.ts")).settings,
  startTracing: async (config, logger) => (await import("./trace.ts")).trace(config, logger),
};
