import { openKeyDomain } from "../../src/services/kms/domain.ts";
import type { OpenServices } from "../../src/services/service-module.ts";
import { openGoogleServices } from "./service.ts";
import { createRingStore } from "./tables.ts";

export { examples } from "./examples.ts";

/** Opens the services of the package. */
export const openServices: OpenServices = (moduleDeps) => {
  const { deps, close } = openKeyDomain(moduleDeps);
  const rings = createRingStore(moduleDeps.store);
  return { services: openGoogleServices({ ...deps, rings }), close };
};
