import type { OpenServices } from "../../src/services/service-module.ts";
import { openGoogleServices } from "./service.ts";
import { createRingStore } from "./tables.ts";

export { examples } from "./examples.ts";

export const openServices: OpenServices = ({ keyDomain, store }) => ({
  services: openGoogleServices({ ...keyDomain.open(), rings: createRingStore(store) }),
});
