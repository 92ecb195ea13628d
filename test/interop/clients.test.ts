import { describe } from "vitest";
import { testClients } from "./client-tests.ts";
import { npmDrivers } from "./drivers.ts";

describe("a client that npm installs,", () => testClients(npmDrivers));
