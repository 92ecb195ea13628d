/**
 * The reporter of the tests: prints what failed and nothing of what passed, and says at the end why tests were skipped.
 * At a terminal it shows how far the run is.
 */
import type { SerializedError } from "vitest";
import {
  DefaultReporter,
  type TestCase,
  type TestModule,
  type TestRunEndReason,
  type Vitest,
} from "vitest/node";
import { describeSkipped } from "./skipped-tests.ts";

type ModuleState = Parameters<DefaultReporter["printTestCase"]>[0];

// biome-ignore lint/style/noDefaultExport: vitest reads the default export
export default class QuietReporter extends DefaultReporter {
  override onInit(vitest: Vitest): void {
    // What tests print is shown if they fail.
    this.silent ??= "passed-only";
    super.onInit(vitest);
  }

  override onTestRunEnd(
    modules: readonly TestModule[],
    errors: readonly SerializedError[],
    reason: TestRunEndReason,
  ): void {
    super.onTestRunEnd(modules, errors, reason);
    // Somebody who names tests does not ask for others.
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
