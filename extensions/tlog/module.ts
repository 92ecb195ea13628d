import { createServiceImplSpec } from "@connectrpc/connect";
import { LogService } from "#gen/tlog/log_service_pb.ts";
import type { OpenServices } from "../../src/services/service-module.ts";
import { logSettings } from "./log-settings.ts";
import { openLogs } from "./logs.ts";
import { logService } from "./service.ts";

export { examples } from "./examples.ts";

export const openServices: OpenServices = async ({ store, provider, valueFor, metrics, now }) => {
  const options = logSettings({ valueFor });
  const logs = await openLogs({ store, provider, options, metrics, now });
  const service = logService({ store, provider, logs, ...options, metrics, now });
  return {
    services: [createServiceImplSpec<typeof LogService>(LogService, service)],
    async close() {
      for (const log of logs) await log.close();
    },
  };
};
