import { describe } from "vitest";
import { describePostgres, freshDatabaseUrl } from "../support/postgres.ts";
import { testClients } from "./client-tests.ts";
import { npmDrivers, otherDrivers } from "./drivers.ts";

describe("the command-line client", () => testClients(otherDrivers));

describePostgres("with two servers on one PostgreSQL, called in turn,", () => {
  testClients(
    npmDrivers.filter(({ name }) => name.endsWith("gRPC")),
    { count: 2, database: async () => ["--database-url", await freshDatabaseUrl()] },
  );
});
