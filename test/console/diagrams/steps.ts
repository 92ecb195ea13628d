/** Steps of stories as diagrams read them, without a browser. */
import type { StepView } from "../../../src/console/page/parts/diagrams/step-view.ts";

const start = async () => {};

/** A step that waits for the reader. */
export function makeReadyStep(): StepView<never> {
  return { start, status: "ready", value: undefined, failure: undefined };
}

/** A step that is done. */
export function makeDoneStep<T>(value: T): StepView<T> {
  return { start, status: "done", value, failure: undefined };
}

/** A step that failed. */
export function makeFailedStep(reason: string): StepView<never> {
  return { start, status: "failed", value: undefined, failure: { reason } };
}
