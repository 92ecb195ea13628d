/** The core with its extensions, composed like in main.ts. */
import { extensions } from "../../extensions/index.ts";
import { createVerbTable } from "../../src/cli/groups.ts";
import type { VerbTable } from "../../src/cli/verb.ts";
import { collectSettings } from "../../src/extension.ts";
import { collectPackages } from "../../src/services/registry.ts";

/** Loads the settings of extensions. */
export const loadSettings = () => collectSettings(extensions);

/** Every verb except `serve`. */
export const verbTable: VerbTable = createVerbTable(extensions);

/** Loads `serve`. */
export const loadServeVerb = async () => [
  await (await import("../../src/serve.ts")).createServeVerb(extensions),
];

/** Loads every service package. */
export const loadPackages = () => collectPackages(extensions);
