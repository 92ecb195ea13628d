/** The places in the repository that name the version: a release needs the same one in all of them. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A place that names a version, and the pattern whose first group is the version. */
type VersionPlace = readonly [path: string, pattern: RegExp];

const places: readonly VersionPlace[] = [
  ["package.json", /^ {2}"version": "([^"]+)"/m],
  ["package-lock.json", /^ {2}"version": "([^"]+)"/m],
  ["package-lock.json", /^ {4}"": \{\s+"name": "quantum-safe-playground",\s+"version": "([^"]+)"/m],
  ["CHANGELOG.md", /^## (\d[^\s,]*)/m],
  ["deploy/helm/qsp/Chart.yaml", /^version: "?([^"\s]+)/m],
  ["deploy/helm/qsp/Chart.yaml", /^appVersion: "?([^"\s]+)/m],
  ["native/Cargo.toml", /^version = "([^"]+)"/m],
  ["native/Cargo.lock", /^name = "qsp-native"\nversion = "([^"]+)"/m],
  ["src/crypto/native/load.ts", /\bnativeVersion = "([^"]+)"/],
];

/** Name of the tarball in the install commands of the pages. */
const tarballName = /quantum-safe-playground-(\d[\w.+-]*?)\.tgz/g;

/**
 * Lists the places that name a different version, or none.
 *
 * @param root the folder of package.json
 * @returns one sentence for each place; an empty list if all agree
 */
export function findVersionFaults(root: string, version: string): string[] {
  const read = (path: string): string => readFileSync(join(root, path), "utf8");
  const declared = places.map(([path, pattern]) => [path, pattern.exec(read(path))?.[1]] as const);
  const pages = globSync(["*.md", "docs/*.md", "extensions/*/README.md"], { cwd: root });
  const named = pages.flatMap((path) =>
    [...read(path).matchAll(tarballName)].map(([, found]) => [path, found] as const),
  );
  return [...declared, ...named]
    .filter(([, found]) => found !== version)
    .map(([path, found]) =>
      found === undefined
        ? `${path} names no version; expected ${version}`
        : `${path} has version ${found}; expected ${version}`,
    );
}
