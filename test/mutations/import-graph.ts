/** Finds the tests that depend on a file, the most promising first. (`vitest related` does not order them.) */
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";

/** Files that a file runs without naming them in an import. */
const started: Readonly<Record<string, readonly string[]>> = {
  "test/support/program.ts": ["src/main.ts"],
  "test/setup/compile.slow.test.ts": ["src/setup.mjs"],
};

/** Lists the quick tests that depend on a file, and the slow ones above. */
export type FindTests = (file: string) => readonly string[];

/** Reads all files of a project. */
export function readImportGraph(root: string): FindTests {
  const files = globSync("{src,console,test,extensions}/**/*.{ts,tsx,mjs}", { cwd: root });
  const sources = new Map(files.map((file) => [file, readFileSync(join(root, file), "utf8")]));
  const importers = new Map<string, string[]>();
  for (const [file, source] of sources)
    for (const imported of [...listImports(file, source), ...(started[file] ?? [])])
      importers.set(imported, [...(importers.get(imported) ?? []), file]);
  return (file) => {
    const scored = [...measureDistances(importers, file)]
      .filter(([path]) => path.endsWith(".test.ts") && (!/\.(slow|full)\./.test(path) || path in started))
      .map(([path, distance]) => ({
        path,
        score: score(path, sources.get(path) ?? "", file) - distance / 2,
      }));
    return scored.toSorted((one, other) => other.score - one.score).map(({ path }) => path);
  };
}

/** Returns the files that a file names: in imports of values, and where it starts threads and programs. */
function listImports(file: string, source: string): string[] {
  const withoutTypes = source.replaceAll(/^(?:import|export) type [^;]*? from "[^"]+"/gm, "");
  return [...withoutTypes.matchAll(/"(\.{1,2}\/[^"\n]+\.(?:ts|tsx|mjs|json))"/g)].map(([, path = ""]) =>
    join(file, "..", path),
  );
}

/** Returns the number of imports between a file and each dependent file. */
function measureDistances(
  importers: ReadonlyMap<string, readonly string[]>,
  file: string,
): ReadonlyMap<string, number> {
  const distances = new Map([[file, 0]]);
  // The loop adds to the map that it iterates over.
  for (const [path, distance] of distances)
    for (const importer of importers.get(path) ?? [])
      if (!distances.has(importer)) distances.set(importer, distance + 1);
  return distances;
}

/** Scores a test: for services/kms/rotate.ts, a good test has these words in its path and often says "rotate". */
function score(test: string, source: string, file: string): number {
  const words = new Set(test.split(/[/.-]/));
  const shared = file.split(/[/.-]/).filter((word) => words.has(word)).length;
  const said = basename(file, ".ts")
    .split("-")
    .reduce((sum, word) => sum + Math.log2(source.split(word.replace(/s$/, "")).length), 0);
  return 2 * shared + said;
}
