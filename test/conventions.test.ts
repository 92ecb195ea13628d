/** The files that hosts and tools read: CI, dependencies, the version of Node, the list of extensions. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { extensions } from "../extensions/index.ts";
import { neededNode } from "../src/setup/find-node.mjs";

const root = join(import.meta.dirname, "..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const workflow = ".github/workflows/ci.yml";
const npmScripts = (text: string): Set<string> =>
  new Set(
    [...text.matchAll(/\bnpm (?:run )?(test|[a-z]+:[a-z]+|check|native|release)\b/g)].map(
      ([, name = ""]) => name,
    ),
  );

interface Job {
  readonly steps: readonly { readonly uses?: string; readonly run?: string }[];
}

describe("the CI workflow", () => {
  const jobs = Object.values<Job>(parse(read(workflow)).jobs);
  const commands = jobs.flatMap(({ steps }) => steps.flatMap(({ run }) => run ?? [])).join("\n");

  it("runs every npm script that .ci/run runs", () => {
    const missing = npmScripts(read(".ci/run").replaceAll(/run_tests ".*" /g, "npm run ")).difference(
      npmScripts(commands),
    );
    expect([...missing]).toEqual([]);
  });

  it("runs only npm scripts that exist", () => {
    const { scripts } = JSON.parse(read("package.json"));
    expect([...npmScripts(commands)].filter((name) => scripts[name] === undefined)).toEqual([]);
  });

  it("pins each action to a version", () => {
    const actions = jobs.flatMap(({ steps }) => steps.flatMap(({ uses }) => uses ?? []));
    expect(actions.filter((name) => !/^actions\/[\w-]+@v\d+$/.test(name))).toEqual([]);
  });
});

describe("the Dependabot configuration", () => {
  it("names only folders that exist", () => {
    const { updates }: { updates: { directory?: string; directories?: string[] }[] } = parse(
      read(".github/dependabot.yml"),
    );
    const folders = updates.flatMap(({ directory, directories = [] }) =>
      [directory ?? [], directories].flat(),
    );
    const missing = folders.filter(
      (folder) => folder !== "/" && globSync(folder.slice(1), { cwd: root }).length === 0,
    );
    // A copy of the core has no extensions.
    expect(missing.filter((folder) => !folder.startsWith("/extensions/"))).toEqual([]);
  });
});

describe(".nvmrc", () => {
  it("names the Node that the program is compiled for", () => {
    expect(read(".nvmrc")).toBe(`${neededNode}\n`);
  });
});

interface LockedPackage {
  readonly version?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly link?: boolean;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const { packages } = JSON.parse(read("package-lock.json")) as {
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

describe("the list of extensions", () => {
  it("equals the folders in extensions/", () => {
    const folders = globSync("extensions/*/", { cwd: root }).map((path) => basename(path));
    expect(extensions.map(({ name }) => name).toSorted()).toEqual(folders.toSorted());
  });

  it("has a page and tests for each", () => {
    const missing = extensions.flatMap(({ name }) =>
      ["README.md", "extension.ts", "test"]
        .map((part) => join(root, "extensions", name, part))
        .filter((path) => !existsSync(path)),
    );
    expect(missing).toEqual([]);
  });
});
