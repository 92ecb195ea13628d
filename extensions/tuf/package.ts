import { file_tuf_repository_service } from "#gen/tuf/repository_service_pb.ts";
import type { ServicePackage } from "../../src/services/registry.ts";
import { declaredReasons } from "./reasons.ts";

export const tufPackage: ServicePackage = {
  name: "tuf",
  after: "defi",
  files: [file_tuf_repository_service],
  profiles: { "tuf.RepositoryService": { restStyle: "own", reasons: declaredReasons } },
  load: () => import("./module.ts"),
  tables: async () => {
    const { tufTables } = await import("./tables.ts");
    const { contentTables } = await import("./contents-tables.ts");
    const tables = { ...tufTables.tables, ...contentTables.tables };
    return { ...tufTables, tables, steps: { ...tufTables.steps, ...contentTables.steps } };
  },
  writes: true,
};
