import { describe } from "vitest";
import { testClients } from "./client-tests.ts";
import { otherDrivers } from "./drivers.ts";

describe("the command-line client", () => testClients(otherDrivers));
