/** What the tests of extensions add to those of the core. */
import { globSync } from "node:fs";
import { join } from "node:path";
import type { AtEnd } from "./at-end.ts";

const root = join(import.meta.dirname, "../../extensions");

/** Loads the modules of one name in the folders of the tests of extensions. */
export async function loadFromExtensions<Module>(name: string): Promise<Module[]> {
  const paths = globSync(`*/test/${name}.ts`, { cwd: root }).sort();
  return Promise.all(paths.map((path) => import(join(root, path))));
}

/** Makes the flags that the examples and the access rows of extensions need. */
export async function loadFlags(atEnd: AtEnd): Promise<string[]> {
  const modules = await loadFromExtensions<{ makeFlags(atEnd: AtEnd): readonly string[] }>("flags");
  return modules.flatMap(({ makeFlags }) => makeFlags(atEnd));
}
