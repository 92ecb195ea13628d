/** What this extension adds to the program. */
import type { Extension } from "../../src/extension.ts";

export const envoyAuth: Extension = {
  name: "envoy-auth",
  title: "Envoy external authorization",
  summary: "operators who protect other services with this server's tokens",
  packages: async () => [(await import("./package.ts")).envoyPackage],
};
