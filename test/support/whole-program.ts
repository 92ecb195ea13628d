/** The core with its extensions, as main.ts composes them. */
import { extensions } from "../../extensions/index.ts";
import { createVerbTable } from "../../src/cli/groups.ts";
import type { VerbTable } from "../../src/cli/verb.ts";
import { collectSettings } from "../../src/extension.ts";
import { collectPackages } from "../../src/services/registry.ts";

/** Loads the settings of extensions. */
export const loadSettings = () => collectSettings(extensions);

/** Every verb but `serve`. */
export const verbTable: VerbTable = createVerbTable(extensions);

/** Loads `serve`. */
export const loadServeVerb = async () => [
  await (await import("../../src/serve.ts")).createServeVerb(extensions),
];

/** Loads every package of services. */
export const loadPackages = () => collectPackages(extensions);
