import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

interface LockedPackage {
  readonly version?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly link?: boolean;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const root = join(import.meta.dirname, "..");
const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
  readonly packages: Readonly<Record<string, LockedPackage>>;
};
/** All except this repository's own packages and the links to them. */
const installed = Object.entries(packages).filter(
  ([path, { link = false }]) => path.startsWith("node_modules/") && !link,
);

describe("package-lock.json", () => {
  // `npm ci` rejects a lock file that omits a package, even one for a different platform.
  it("names every package that any platform installs", () => {
    const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies).filter(
        (name) =>
          packages[`node_modules/${name}`] === undefined &&
          packages[`${path}/node_modules/${name}`] === undefined,
      ),
    );
    expect(missing).toEqual([]);
  });

  it("pins every package to its content, without naming a registry", () => {
    expect(installed.length).toBeGreaterThan(100);
    const own = Object.keys(packages).filter((path) => !path.startsWith("node_modules/"));
    expect(own).toEqual(["", "bundled"]);
    expect(packages["node_modules/qsp-bundled"]?.resolved).toBe("bundled");
    expect(installed.filter(([, entry]) => entry.integrity === undefined).map(([path]) => path)).toEqual([]);
    expect(installed.filter(([, entry]) => entry.resolved !== undefined).map(([path]) => path)).toEqual([]);
  });
});
