import { createServiceImplSpec } from "@connectrpc/connect";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import type { OpenServices } from "../service-module.ts";
import { createKeyCache } from "./key-cache.ts";
import { kmsService } from "./service.ts";
import { createKmsStore } from "./store.ts";

export { examples } from "./examples.ts";

/** Opens the services of the package. */
export const openServices: OpenServices = (deps) => {
  const keys = createKmsStore(deps.store);
  const cache = createKeyCache({ provider: deps.provider, keys });
  const service = kmsService({ ...deps, keys, cache });
  return { services: [createServiceImplSpec<typeof KmsService>(KmsService, service)], close: cache.close };
};
