import { createServiceImplSpec } from "@connectrpc/connect";
import type { OpenServices } from "../../src/services/service-module.ts";
import { GreetingService } from "../gen/greeting/greeting_service_pb.ts";

export { examples } from "./examples.ts";

/** Opens the services of the package. */
export const openServices: OpenServices = () => ({
  services: [
    createServiceImplSpec<typeof GreetingService>(GreetingService, {
      greet: ({ name }) => ({ greeting: `Hello, ${name}!` }),
      getHealth: () => ({ serviceStatus: "UP" }),
    }),
  ],
});
