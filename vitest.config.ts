import os from "node:os";
import { basename, join } from "node:path";
import {
  configDefaults,
  defineConfig,
  type Plugin,
  type TestProjectInlineConfiguration,
} from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Inherently slow tests: kills, memory, load floods, third-party tools. */
const slow = "{test,{console,extensions/*}/test}/**/*.slow.test.ts";

/** Measurements of CPU, time and memory, whose limits hold only on an otherwise idle machine. */
const full = "{test,{console,extensions/*}/test}/**/*.full.test.ts";

/** Tests that do more in `test:full`: 100,000 sequences, 100 kills, all vectors on all engines, all clients. */
const longer = [
  "test/faults/{disk-full,drains,fuzz,hostile-peers,kill}.slow.test.ts",
  "extensions/{google-kms,top}/test/{hostile-peers,readme-steps}.slow.test.ts",
  "test/interop/{clients,conformance,readme-services,readme-steps}.slow.test.ts",
  "test/interop/clients.test.ts",
  "test/openapi/foreign-clients.slow.test.ts",
  "test/vectors/official.slow.test.ts",
];

const numbers = {
  QSP_TEST_SEQUENCES: "100000",
  QSP_TEST_KILLS: "100",
  QSP_TEST_LONG: "1",
};

/** A one-minute check that the program works at all. The other tests prove the same and more. */
const smoke = "test/smoke/*.test.ts";

/** What `npm run check` proves of sources and generated files, without the program. */
const check = "test/{generated,layers,wording}.test.ts";

/** Tests that must pass on both databases: on SQLite with the quick tests, on PostgreSQL with the slow ones. */
const both = "{test,{console,extensions/*}/test}/**/*.both.test.ts";

/** Files that take long, longest first: none of them may be left running alone at the end. */
const longest = [
  "readme-steps tunnels page conformance clients-page clients package postgres-down disk-full collectors kill",
  "sigstore compile reference left-clients examples token-mode official fuzz stories master-key transcripts",
  "foreign-tools python-tuf node key-manager backends access-table systemd release shutdown snippets refusals",
  "identity-log log-in floods document backup gateway promtool iot life-cycle repository vpn secrets",
  "process tls grants hostile-peers formats signing log quotas users starts outputs issuer-rotate plugin deadline bombs",
].flatMap((line) => line.split(" "));

/** Ranks a file by its position in the list; unlisted files come last. */
function rankOf({ moduleId }: TestSpecification): number {
  const name = basename(moduleId).replace(/\..*/, "");
  const place = longest.indexOf(name);
  return place < 0 ? longest.length : place;
}

/** Starts long files first, so that no worker is left running one at the end. */
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((one, other) => rankOf(one) - rankOf(other));
  }
}

/** Files in shared folders that mock a module or change process-wide state. */
const alone = ["identity-log", "log-in", "master-key", "private-store", "transcripts", "users"];

/**
 * Quick tests whose files leave no state in their process, and so can share one. A separate process costs each file
 * up to a second of CPU time, mostly for loading modules again.
 */
const shared = [
  "console/test/**",
  "extensions/*/test/**",
  "test/{access,audit,calls,cli,client,crypto,database,docs,envoy,errors,faults,http,identity,interop,merkle}/**",
  "test/{message-limits,openapi,proto-archive,records,secrets,server,services,store,transcoding,vectors}/**",
].map((folder) => `${folder}/!(*.slow|*.full|${alone.join("|")}).test.ts`);
const quick = {
  include: ["{test,{console,extensions/*}/test}/**/*.test.ts"],
  exclude: [...configDefaults.exclude, slow, full, smoke, check],
  provide: { databases: ["sqlite" as const] },
};

const threadFinder = join(import.meta.dirname, "test/support/compiled-threads.ts");

/** Lets the code under test start its threads from the compiled program. */
const compiledThreads: Plugin = {
  name: "compiled-threads",
  enforce: "pre",
  resolveId(path, importer) {
    // Vitest asks again with the full path for imports that are already resolved.
    const isImport = path.startsWith(".") && path.endsWith("/program-files.ts");
    return isImport && importer !== threadFinder ? threadFinder : undefined;
  },
};

/** Configures tests of one kind, on both databases unless `provide` says otherwise. */
function project(name: string, test: TestProjectInlineConfiguration["test"]): TestProjectInlineConfiguration {
  return { extends: true, test: { name, provide: { databases: ["sqlite", "postgres"] }, ...test } };
}

// biome-ignore lint/style/noDefaultExport: vitest reads the default export
export default defineConfig({
  plugins: [compiledThreads],
  test: {
    // Halves the start time of each program, most of which is spent reading TypeScript.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, "node_modules/.compile-cache") },
    globalSetup: "test/support/global-setup.ts",
    reporters: ["./test/support/quiet-reporter.ts"],
    // Milliseconds. Long, so that a busy machine fails no test; tests with time limits set their own.
    testTimeout: 120_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 100_000 } },
    // Three more than the vitest default: many tests wait for programs that they started.
    maxWorkers: os.availableParallelism() + 2,
    // The same as npm start. Tests are short-lived, and most of what they allocate is garbage immediately.
    execArgv: ["--max-semi-space-size=64"],
    sequence: { sequencer: LongFirst },
    projects: [
      project("quick", { ...quick, exclude: [...quick.exclude, ...shared] }),
      project("quick-shared", { ...quick, include: shared, isolate: false }),
      project("check", { include: [check] }),
      project("smoke", { include: [smoke], provide: { databases: ["sqlite"] } }),
      project("postgres", { include: [both], isolate: false, provide: { databases: ["postgres"] } }),
      project("slow", { include: [slow], isolate: false }),
      project("full", { include: [full, ...longer], env: { ...numbers, ...process.env } }),
    ],
  },
});
