/** The core with its extensions, as main.ts composes them. */
import { extensions } from "../../extensions/index.ts";
import { addVerbs, verbTable as coreVerbs } from "../../src/cli/groups.ts";
import type { VerbTable } from "../../src/cli/verb.ts";
import { collectPackages } from "../../src/services/registry.ts";

/** Every verb but `serve`. */
export const verbTable: VerbTable = addVerbs(
  coreVerbs,
  extensions.flatMap(({ verbs = [] }) => verbs),
);

/** Loads every package of services. */
export const loadPackages = () => collectPackages(extensions);
