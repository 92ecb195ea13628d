/** No example requests: no call of this package has a REST path. */
import type { Example } from "../../src/calls/example.ts";

export const examples: readonly Example[] = [];
