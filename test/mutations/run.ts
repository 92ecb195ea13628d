/**
 * Makes each mistake of mutations.txt in a copy of the project, and reports which test catches it:
 * `npm run test:mutations -- records/tag kms`, or all without words. Each mistake takes a few seconds.
 */
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { readImportGraph } from "./import-graph.ts";
import { readMutations } from "./list.ts";

/** Result of a run of test files. */
interface TestRun {
  readonly hasPassed: boolean;
  /** File and name of the first failed test; the cause for a run without a report. */
  readonly failed: string;
  readonly failedFile: string | undefined;
}

/** Number of tests in each batch, the most promising ones first. They catch most mistakes. */
const rounds = [2, 6, 24, Number.POSITIVE_INFINITY];
/** Minutes after which a run counts as hanging. */
const maxMinutes = 15;

const root = join(import.meta.dirname, "../..");
const words = process.argv.slice(2);

/** Copies the files that git has or would add, so that later edits do not affect the result. */
function copyProject(): string {
  const copy = mkdtempSync(join(os.tmpdir(), "qsp-mutations-"));
  const args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  const { stdout } = spawnSync("git", args, { cwd: root, encoding: "utf8", maxBuffer: 16 * 1024 * 1024 });
  for (const path of stdout.split("\0").filter((part) => part !== ""))
    cpSync(join(root, path), join(copy, path), { force: true });
  symlinkSync(realpathSync(join(root, "node_modules")), join(copy, "node_modules"));
  return copy;
}

function runTests(copy: string, files: readonly string[]): TestRun {
  const report = join(copy, ".vitest-report.json");
  rmSync(report, { force: true });
  const vitest = join(copy, "node_modules/vitest/vitest.mjs");
  const flags = [
    "--project",
    "quick",
    "--project",
    "quick-shared",
    "--project",
    "slow",
    "--bail",
    "1",
    "--reporter",
    "json",
    "--outputFile",
    report,
  ];
  const { status } = spawnSync(process.execPath, [vitest, "run", ...flags, ...files], {
    cwd: copy,
    stdio: "ignore",
    timeout: maxMinutes * 60_000,
  });
  if (status === 0) return { hasPassed: true, failed: "", failedFile: undefined };
  const { testResults }: Report = status === null ? { testResults: [] } : readReport(report);
  // The first failure cancels the other tests.
  const failures = testResults.filter((one) => one.status === "failed");
  const first = failures.find((one) => findFailed(one) !== undefined) ?? failures[0];
  if (first !== undefined) {
    const failedFile = first.name.slice(copy.length + 1);
    const why = findFailed(first) ?? first.message?.split("\n")[0] ?? "";
    return { hasPassed: false, failed: `${failedFile}: ${why}`, failedFile };
  }
  const failed = status === null ? `no end within ${maxMinutes} minutes` : "an error outside of all tests";
  return { hasPassed: false, failed, failedFile: undefined };
}

/** The fields of vitest's report that are read here. */
interface Report {
  readonly testResults: readonly FileResult[];
}

interface FileResult {
  readonly name: string;
  readonly status: string;
  readonly message?: string;
  readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
}

function findFailed({ assertionResults }: FileResult): string | undefined {
  return assertionResults.find(({ status }) => status === "failed")?.fullName.trim();
}

function readReport(path: string): Report {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return { testResults: [] }; // The run ended before it could report.
  }
}

/** Returns the test that catches a mistake; undefined if none does. */
function findCatcher(copy: string, tests: readonly string[]): TestRun | undefined {
  let start = 0;
  for (const count of rounds) {
    const files = tests.slice(start, start + count);
    if (files.length === 0) return undefined;
    const run = runTests(copy, files);
    if (!run.hasPassed) return run;
    start += count;
  }
  return undefined;
}

const mutations = readMutations().filter(
  ({ file }) => words.length === 0 || words.some((word) => file.includes(word)),
);
const findTests = readImportGraph(root);
const copy = copyProject();
const problems: string[] = [];
try {
  for (const { file, mistake, text, replacement } of mutations) {
    const startedMs = performance.now();
    const path = join(copy, file);
    const source = readFileSync(path, "utf8");
    const tests = findTests(file);
    writeFileSync(
      path,
      source.replace(text, () => replacement),
    );
    const catcher = findCatcher(copy, tests);
    writeFileSync(path, source);
    // A test that also fails without the mistake has caught nothing.
    const isBroken = catcher?.failedFile !== undefined && !runTests(copy, [catcher.failedFile]).hasPassed;
    const verdict = catcher === undefined ? "NOT CAUGHT" : isBroken ? "FAILS ANYWAY" : "caught";
    const seconds = ((performance.now() - startedMs) / 1000).toFixed(0);
    const by = catcher?.failed ?? `${tests.length} tests depend on it`;
    process.stdout.write(`${verdict}: ${file}: ${mistake} (${seconds} s)\n    ${by}\n`);
    if (verdict !== "caught") problems.push(`${verdict}: ${file}: ${mistake}`);
  }
} finally {
  rmSync(copy, { recursive: true, force: true });
}
process.stdout.write(
  [`${mutations.length - problems.length} of ${mutations.length} mistakes caught.`, ...problems, ""].join(
    "\n",
  ),
);
process.exitCode = problems.length === 0 ? 0 : 1;
