import type { OpenServices } from "../service-module.ts";
import { openGoogleServices } from "./service.ts";

export { examples } from "./examples.ts";

/** Opens the services of the package. */
export const openServices: OpenServices = () => ({ services: openGoogleServices() });
