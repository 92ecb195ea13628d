import { createServiceImplSpec } from "@connectrpc/connect";
import { LogService } from "#gen/tlog/log_service_pb.ts";
import type { OpenServices } from "../../src/services/service-module.ts";
import { openLogs } from "./logs.ts";
import { logService } from "./service.ts";

export { examples } from "./examples.ts";

/** Opens the services of the package. */
export const openServices: OpenServices = async ({ store, provider, logs: options, now }) => {
  const logs = await openLogs({ store, provider, logs: options, now });
  const { witnesses, areEntriesPublic, metrics } = options;
  const service = logService({ store, provider, logs, witnesses, areEntriesPublic, metrics, now });
  return {
    services: [createServiceImplSpec<typeof LogService>(LogService, service)],
    async close() {
      for (const log of logs) await log.close();
    },
  };
};
