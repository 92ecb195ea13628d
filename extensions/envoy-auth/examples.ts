/** Example requests: none, because no call of the package has a REST path. */
import type { Example } from "../../src/calls/example.ts";

export const examples: readonly Example[] = [];
