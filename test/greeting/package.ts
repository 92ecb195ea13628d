/** The entry of the package `greeting`, as src/services/registry.ts has one for each package. */

import type { ServicePackage } from "../../src/services/registry.ts";
import { file_greeting_greeting_service } from "../gen/greeting/greeting_service_pb.ts";

export const greetingPackage: ServicePackage = {
  name: "greeting",
  files: [file_greeting_greeting_service],
  load: () => import("./module.ts"),
};
