import { createServiceImplSpec } from "@connectrpc/connect";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import type { OpenServices } from "../service-module.ts";
import { createKeyCache } from "./key-cache.ts";
import { startSchedule } from "./schedule.ts";
import { kmsService } from "./service.ts";
import { createKmsStore } from "./store.ts";

export { examples } from "./examples.ts";

/** Opens the services of the package. */
export const openServices: OpenServices = (deps) => {
  const keys = createKmsStore(deps.store, deps.now);
  const cache = createKeyCache({ provider: deps.provider, keys });
  const service = kmsService({ ...deps, keys, cache });
  const stopSchedule = startSchedule({ ...deps, keys, cache });
  const close = async (): Promise<void> => {
    await stopSchedule();
    await cache.close();
  };
  return { services: [createServiceImplSpec<typeof KmsService>(KmsService, service)], close };
};
