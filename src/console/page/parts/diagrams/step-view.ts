/** The parts of a step of a story that a diagram reads. */

export interface StepView<T> {
  readonly status: "waiting" | "ready" | "running" | "done" | "failed";
  /** The result, once the step is done. */
  readonly value: T | undefined;
  readonly failure: { readonly reason: string } | undefined;
  readonly start: () => Promise<void>;
}

/** The view of a step that runs this function: StepViewOf<typeof signMessage>. */
export type StepViewOf<Run extends (...args: never) => unknown> = StepView<Awaited<ReturnType<Run>>>;
