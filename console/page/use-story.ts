/** Runs a story's steps, and keeps their results and the reader's input. */
import { useRef, useState } from "preact/hooks";
import { type CallRecord, createCaller } from "./calls.ts";
import { toFailure } from "./failure.ts";
import {
  type Field,
  findBasis,
  findEnd,
  findLatest,
  findOutcome,
  type Outcome,
  type Outcomes,
  type Step,
  type StepState,
  type StoryState,
} from "./story-step.ts";

interface Progress {
  readonly outcomes: Outcomes;
  readonly values: ReadonlyMap<Field, string>;
}

let lastStamp = 0;

/** @param shared is passed to the steps */
export function useStory<S>(shared: S): StoryState<S> {
  const [progress, setProgress] = useState<Progress>({ outcomes: new Map(), values: new Map() });
  // A step may start before the page is rendered with the reader's latest input.
  const newest = useRef(progress);
  const change = (next: Partial<Progress>): void => {
    newest.current = { ...newest.current, ...next };
    setProgress(newest.current);
  };

  const valueIn = (field: Field): string =>
    newest.current.values.get(field) ?? (typeof field.initial === "string" ? field.initial : field.initial());

  const start = async (step: Step<unknown, S>): Promise<boolean> => {
    const basis = findBasis(step, newest.current.outcomes);
    if (basis === undefined || findEnd(step, newest.current.outcomes) !== undefined) return false;
    if (findOutcome(step, newest.current.outcomes)?.status === "running") return false;
    lastStamp += 1;
    const stamp = lastStamp;
    const calls: CallRecord[] = [];
    const finish = (end: Pick<Outcome, "status" | "value" | "failure">): void => {
      const outcomes = new Map(newest.current.outcomes);
      // If the reader restarts a step while it runs, only the newer outcome counts.
      if (end.status !== "running" && outcomes.get(step)?.stamp !== stamp) return;
      change({ outcomes: outcomes.set(step, { ...end, basis, stamp, calls }) });
    };
    finish({ status: "running" });
    const caller = createCaller((call) => calls.push(call));
    try {
      // `gather` gives each step the values that it declares.
      finish({ status: "done", value: await step.run(caller, gather(step) as never, shared) });
      return true;
    } catch (thrown) {
      finish({ status: "failed", failure: toFailure(thrown) });
      return false;
    }
  };

  const gather = ({ fields = {}, after = {} }: Step<unknown, S>): Record<string, unknown> =>
    Object.fromEntries([
      ...Object.entries(fields).map(([name, field]) => [name, valueIn(field)]),
      ...Object.entries(after).map(([name, before]) => [name, newest.current.outcomes.get(before)?.value]),
    ]);

  const at = <T>(step: Step<T, S>): StepState<T> => {
    const outcome = findOutcome(step, progress.outcomes);
    const isReady = findBasis(step, progress.outcomes) !== undefined;
    return {
      status: outcome?.status ?? (isReady ? "ready" : "waiting"),
      // Only this step's `run` produces its outcomes.
      value: outcome?.value as T | undefined,
      failure: outcome?.failure,
      calls: outcome?.calls ?? [],
    };
  };

  return {
    shared,
    at,
    read: (step) => at(step).value,
    endOf: (step) => findEnd(step, progress.outcomes),
    latest: findLatest(progress.outcomes),
    start,
    valueIn,
    fill: (field, value) => change({ values: new Map(newest.current.values).set(field, value) }),
  };
}
