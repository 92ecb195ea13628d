/** What the extensions' tests add to the core's tests. */
import { globSync } from "node:fs";
import { join } from "node:path";
import type { AtEnd } from "./at-end.ts";

const root = join(import.meta.dirname, "../../extensions");

/** Loads the modules with this name from the test folders of all extensions. */
export async function loadFromExtensions<Module>(name: string): Promise<Module[]> {
  const paths = globSync(`*/test/${name}.ts`, { cwd: root }).sort();
  return Promise.all(paths.map((path) => import(join(root, path))));
}

/** Builds the flags that the examples and access rows of extensions need. */
export async function loadFlags(atEnd: AtEnd): Promise<string[]> {
  const modules = await loadFromExtensions<{ makeFlags(atEnd: AtEnd): readonly string[] }>("flags");
  return modules.flatMap(({ makeFlags }) => makeFlags(atEnd));
}
