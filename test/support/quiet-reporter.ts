/**
 * The test reporter: prints failures, one line per folder once its files have run, and at the end why tests were
 * skipped. On a terminal, it shows progress.
 */
import { dirname, relative } from "node:path";
import type { SerializedError } from "vitest";
import {
  DefaultReporter,
  type TestCase,
  type TestModule,
  type TestRunEndReason,
  type TestSpecification,
  type Vitest,
} from "vitest/node";
import { describeSkipped } from "./skipped-tests.ts";

type ModuleState = Parameters<DefaultReporter["printTestCase"]>[0];

/** Progress of a folder. */
interface Folder {
  /** Files that have not run yet. */
  remaining: number;
  readonly modules: TestModule[];
}

// biome-ignore lint/style/noDefaultExport: vitest reads the default export
export default class QuietReporter extends DefaultReporter {
  private folders = new Map<string, Folder>();

  override onInit(vitest: Vitest): void {
    // Output of tests is shown only if they fail.
    this.silent ??= "passed-only";
    super.onInit(vitest);
  }

  override onTestRunStart(specifications: readonly TestSpecification[]): void {
    super.onTestRunStart(specifications);
    const byFolder = Map.groupBy(specifications, ({ moduleId }) =>
      dirname(relative(this.ctx.config.root, moduleId)),
    );
    this.folders = new Map(
      byFolder.entries().map(([name, { length }]) => [name, { remaining: length, modules: [] }]),
    );
  }

  override onTestModuleEnd(module: TestModule): void {
    super.onTestModuleEnd(module);
    const name = dirname(module.relativeModuleId);
    const folder = this.folders.get(name);
    if (folder === undefined) return;
    folder.modules.push(module);
    folder.remaining -= 1;
    if (folder.remaining === 0) this.log(describeFolder(name, folder.modules));
  }

  override onTestRunEnd(
    modules: readonly TestModule[],
    errors: readonly SerializedError[],
    reason: TestRunEndReason,
  ): void {
    super.onTestRunEnd(modules, errors, reason);
    const unfinished = modules.flatMap((module) => [...module.children.allTests("pending")]);
    if (unfinished.length > 0) {
      this.log(`Tests that did not finish: ${unfinished.length}, the first is ${unfinished[0]?.fullName}`);
      process.exitCode = 1;
    }
    // A run of selected tests omits the summary of skipped ones.
    if (this.ctx.config.testNamePattern !== undefined) return;
    const tests = modules.flatMap((module) => [...module.children.allTests("skipped")]);
    const skipped = tests.map(({ module, fullName }) => ({ file: module.relativeModuleId, name: fullName }));
    if (skipped.length > 0) this.log(describeSkipped(skipped));
  }

  protected override printTestModule(module: TestModule): void {
    if (module.state() === "failed") super.printTestModule(module);
  }

  protected override printTestCase(moduleState: ModuleState, test: TestCase): void {
    if (test.result().state === "failed") super.printTestCase(moduleState, test);
  }
}

/** Formats a folder's line: test results, and the total duration of its files. */
function describeFolder(name: string, modules: readonly TestModule[]): string {
  const tests = modules.flatMap((module) => [...module.children.allTests()]);
  const counts = (["passed", "failed", "skipped"] as const).flatMap((state) => {
    const count = tests.filter((test) => test.result().state === state).length;
    return count === 0 ? [] : `${count} ${state}`;
  });
  const seconds = modules.reduce((sum, module) => sum + module.diagnostic().duration, 0) / 1000;
  const mark = modules.every((module) => module.ok()) ? "✓" : "✗";
  return ` ${mark} ${name}: ${counts.join(", ") || "no tests"} (${seconds.toFixed(1)} s)`;
}
