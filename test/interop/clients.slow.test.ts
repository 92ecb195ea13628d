import { describe } from "vitest";
import { describePostgres, freshDatabaseUrl } from "../support/postgres.ts";
import { testClients } from "./client-tests.ts";
import { npmDrivers, otherDrivers } from "./drivers.ts";

describe("a program,", () => testClients(otherDrivers));

describePostgres(
  "with two servers on one PostgreSQL, each call to the other one than the call before,",
  () => {
    testClients(
      npmDrivers.filter(({ name }) => name.endsWith("gRPC")),
      { count: 2, database: async () => ["--database-url", await freshDatabaseUrl()] },
    );
  },
);
