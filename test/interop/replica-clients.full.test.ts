import { describePostgres, freshDatabaseUrl } from "../support/postgres.ts";
import { testClients } from "./client-tests.ts";
import { npmDrivers } from "./drivers.ts";

describePostgres("with two servers on one PostgreSQL, called in turn,", () => {
  testClients(
    npmDrivers.filter(({ name }) => name.endsWith("gRPC")),
    { count: 2, database: async () => ["--database-url", await freshDatabaseUrl()] },
  );
});
