import os from "node:os";
import { join } from "node:path";
import {
  configDefaults,
  defineConfig,
  type Plugin,
  type TestProjectInlineConfiguration,
} from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Tests that take long by nature: kills, memory, floods of load, programs of others. */
const slow = "{test,{console,extensions/*}/test}/**/*.slow.test.ts";
/** Measurements of CPU, time and memory, whose limits hold on a machine that does nothing else. */
const full = "{test,{console,extensions/*}/test}/**/*.full.test.ts";
/** Slow tests that do more in `test:full`: 100,000 sequences, 100 kills, all vectors on all engines, all clients. */
const longer = [
  "test/faults/{drains,exchange-fuzz,http-fuzz,kill,kill-lives,mutations}.slow.test.ts",
  "test/interop/clients.slow.test.ts",
  "test/vectors/official.slow.test.ts",
];
const numbers = {
  QSP_TEST_SEQUENCES: "100000",
  QSP_TEST_MUTATIONS: "33334",
  QSP_TEST_KILLS: "100",
  QSP_TEST_LONG: "1",
};
/** A minute that shows whether the program works at all. The other tests prove the same and more. */
const smoke = "test/smoke/*.test.ts";
/** What must hold in both databases: in SQLite among the quick tests, in PostgreSQL among the slow ones. */
const both = "{test,{console,extensions/*}/test}/**/*.both.test.ts";

/** Slow files that take a minute or more beside others, the longest first. */
const longest = [
  "readme-steps",
  "conformance",
  "races",
  "official",
  "kill",
  "kill-lives",
  "postgres-down",
  "examples",
].map((name) => `/${name}.slow.test.ts`);

/** Files that take longer than others of their kind. */
const long =
  /\/(?:clients|store-verify|generated)(?:\.both)?\.test\.ts$|\/(?:clients|clients-page|rewrap-killed|vpn-session|postgres-server|foreign-clients|disk-full|page|reference|node|backends|helm|snippets)\.slow\.test\.ts$/;

/** Where a file stands: one of the longest at its own place, then the long ones, then the others. */
function rankOf({ moduleId }: TestSpecification): number {
  const place = longest.findIndex((end) => moduleId.endsWith(end));
  if (place >= 0) return place;
  return long.test(moduleId) ? longest.length : longest.length + 1;
}

/** Begins with the files that take long, so that no worker waits for one of them in the end. */
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((one, other) => rankOf(one) - rankOf(other));
  }
}

/** Files of these folders that mock a module, or change what a process has once. */
const alone = ["identity-log", "log-in", "log-in-cost", "master-key", "private-store"];
/**
 * Quick tests whose files leave nothing behind in their process, and so may follow others there. A process of its own
 * costs each file up to a second of CPU time, most of it for reading modules again.
 */
const shared = [
  "console/test/**",
  "extensions/{google-kms,oauth,tlog}/test/**",
  "test/{access,audit,client,crypto,database,docs,envoy,formats,identity,merkle,openapi,proto-archive,protocol}/**",
  "test/{records,secrets,server,services,store,transcoding,vectors/own}/**",
].map((folder) => `${folder}/!(*.slow|*.full|${alone.join("|")}).test.ts`);
const quick = {
  include: ["{test,{console,extensions/*}/test}/**/*.test.ts"],
  exclude: [...configDefaults.exclude, slow, full, smoke],
  provide: { databases: ["sqlite" as const] },
};

const threadFinder = join(import.meta.dirname, "test/support/compiled-threads.ts");

/** Lets the code under test start threads from the compiled program. */
const compiledThreads: Plugin = {
  name: "compiled-threads",
  enforce: "pre",
  resolveId(path, importer) {
    // Vitest asks again with the whole path for what is resolved already.
    const isImport = path.startsWith(".") && path.endsWith("/program-files.ts");
    return isImport && importer !== threadFinder ? threadFinder : undefined;
  },
};

/** Tests of one kind, on both databases unless `provide` says otherwise. */
function project(name: string, test: TestProjectInlineConfiguration["test"]): TestProjectInlineConfiguration {
  return { extends: true, test: { name, provide: { databases: ["sqlite", "postgres"] }, ...test } };
}

// biome-ignore lint/style/noDefaultExport: vitest reads the default export
export default defineConfig({
  plugins: [compiledThreads],
  test: {
    // Halves the time that each program takes to start: most of it is spent on reading TypeScript.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, "node_modules/.compile-cache") },
    globalSetup: "test/support/global-setup.ts",
    reporters: ["./test/support/quiet-reporter.ts"],
    // Milliseconds. A busy machine fails no test; what must happen soon says so itself.
    testTimeout: 120_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 100_000 } },
    // Three more than vitest would take: many tests wait for programs that they started.
    maxWorkers: os.availableParallelism() + 2,
    // As npm start has it. Tests live shortly, and most of what they make is garbage at once.
    execArgv: ["--max-semi-space-size=64"],
    sequence: { sequencer: LongFirst },
    projects: [
      project("quick", { ...quick, exclude: [...quick.exclude, ...shared] }),
      project("quick-shared", { ...quick, include: shared, isolate: false }),
      project("smoke", { include: [smoke], provide: { databases: ["sqlite"] } }),
      project("postgres", { include: [both], provide: { databases: ["postgres"] } }),
      project("slow", { include: [slow] }),
      project("full", { include: [full, ...longer], env: { ...numbers, ...process.env } }),
    ],
  },
});
