import { file_wireguard_wireguard_service } from "#gen/wireguard/wireguard_service_pb.ts";
import type { ServicePackage } from "../../src/services/registry.ts";
import { declaredReasons } from "./reasons.ts";

export const wireguardPackage: ServicePackage = {
  name: "wireguard",
  after: "vpn",
  files: [file_wireguard_wireguard_service],
  load: () => import("./module.ts"),
  tables: async () => (await import("./tables.ts")).wireguardTables,
  profiles: { "wireguard.WireguardService": { restStyle: "own", reasons: declaredReasons } },
  // The agent's stream and pending agreements.
  hasState: true,
  writes: true,
};
