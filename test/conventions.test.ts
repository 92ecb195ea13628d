/** The files that hosts and editors read: CI, dependency updates, the version of Node. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
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
