/** What the tests of extensions add to those of the core. */
import { globSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../../extensions");

/** Loads the modules of one name in the folders of the tests of extensions. */
export async function loadFromExtensions<Module>(name: string): Promise<Module[]> {
  const paths = globSync(`*/test/${name}.ts`, { cwd: root }).sort();
  return Promise.all(paths.map((path) => import(join(root, path))));
}
