import { file_tlog_log_service } from "#gen/tlog/log_service_pb.ts";
import type { ServicePackage } from "../../src/services/registry.ts";

export const tlogPackage: ServicePackage = {
  name: "tlog",
  after: "nft",
  files: [file_tlog_log_service],
  load: () => import("./module.ts"),
  tables: async () => (await import("./tables.ts")).tlogTables,
  logVerification: async () => (await import("./verification.ts")).treeVerification,
};
