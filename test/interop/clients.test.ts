import { describe } from "vitest";
import { testClients } from "./client-tests.ts";
import { npmDrivers } from "./drivers.ts";

describe("the npm client", () => testClients(npmDrivers));
