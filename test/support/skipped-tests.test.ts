import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { describeSkipped, installations } from "./skipped-tests.ts";
import { makeTemporaryDirectory } from "./temporary-directory.ts";

const root = join(import.meta.dirname, "../..");
const thisFile = "test/support/skipped-tests.test.ts";

/** The summary rows for tests with these names, when these programs are missing. */
function summarize(names: readonly string[], missing: readonly string[], file = thisFile): string[] {
  const summary = describeSkipped(
    names.map((name) => ({ file, name })),
    (program) => missing.includes(program),
  );
  return summary
    .split("\n")
    .slice(1, -1)
    .map((line) => line.trim().replaceAll(/ {2,}/g, " | "));
}

describe("the summary of skipped tests", () => {
  const grpcurl = "go install github.com/fullstorydev/grpcurl/cmd/grpcurl@latest";
  it.each<[does: string, names: string[], missing: string[], rows: unknown[]]>([
    [
      "counts the tests of each missing program, most affected first, with the install command",
      ["a > b (needs zsh)", "c (needs grpcurl)", "d, which needs grpcurl, e"],
      ["zsh", "grpcurl"],
      [`2 | grpcurl | ${grpcurl}`, "1 | zsh | apt-get install zsh"],
    ],
    [
      "names only the missing ones of several programs",
      ["a (needs mvn and javac)", "the gateway: needs envoy, curl or newer"],
      ["mvn", "envoy"],
      ["1 | mvn | apt-get install maven", "1 | envoy | as install_envoy in .ci/run does"],
    ],
    ["lists the files of other skipped tests", ["takes long"], [], [`1 | something else | in ${thisFile}`]],
  ])("%s", (_does, names, missing, rows) => {
    expect(summarize(names, missing)).toEqual(rows);
  });

  it("finds the program even if the tests do not name it", () => {
    const file = join(makeTemporaryDirectory(), "some.test.ts");
    writeFileSync(file, 'describe.skipIf(isMissing("bash") || isMissing("git"))("a group", () => {});');
    expect(summarize(["a group > a test"], ["git"], file)).toEqual(["1 | git | apt-get install git"]);
  });

  it("knows the programs that .ci/run installs, and their install commands", () => {
    const ci = readFileSync(join(root, ".ci/run"), "utf8");
    const tools = [...ci.matchAll(/^need_(debian|go)_tool (\S+) (\S+)$/gm)];
    expect(tools.length).toBeGreaterThan(10);
    const commands = { debian: "apt-get install", go: "go install" };
    for (const [, kind, program = "", source = ""] of tools)
      expect(installations[program], program).toContain(
        `${kind === "go" ? commands.go : commands.debian} ${source}`,
      );
    for (const [, step = ""] of Object.values(installations)
      .join("\n")
      .matchAll(/as (\w+) in \.ci\/run/g))
      expect(ci).toContain(`${step}() {`);
  });
});
