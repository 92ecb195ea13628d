/**
 * A step of a story: what happens and why, a button, and the result.
 *
 * useStep runs a step and keeps its result; Step shows both. A step that needs the results of others names them and
 * waits for them. When one of them runs again, the step loses its own result.
 */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { formatStepAddress, toSlug } from "./address.ts";
import type { Caller } from "./caller.ts";
import { type CallRecord, createCaller } from "./calls.ts";
import type { CreatedAt } from "./created-records.ts";
import { type Failure, toFailure } from "./failure.ts";
import { usePlace } from "./kept-pages.tsx";
import { Calls } from "./parts/call-view.tsx";
import { FailureNote } from "./parts/failure-note.tsx";
import { useAddress } from "./use-address.ts";

/** Where a step stands. */
export interface StepState<T> {
  readonly status: "waiting" | "ready" | "running" | "done" | "failed";
  /** The result, once the step is done. */
  readonly value: T | undefined;
  readonly failure: Failure | undefined;
  readonly calls: readonly CallRecord[];
  /** Distinguishes one outcome from the next; 0 before the first. */
  readonly stamp: number;
  /** @param at links what the step creates to the step; the address of the page by default */
  start(at?: CreatedAt): Promise<void>;
}

interface Outcome<T> {
  readonly status: "running" | "done" | "failed";
  /** The outcomes of other steps that it depends on. */
  readonly basis: string;
  readonly stamp: number;
  readonly value?: T;
  readonly failure?: Failure;
  readonly calls: readonly CallRecord[];
}

let lastStamp = 0;

/** The state of a step that runs this function: StepOf<typeof signMessage>. */
export type StepOf<Run extends (...args: never) => unknown> = StepState<Awaited<ReturnType<Run>>>;

/** The results of steps, in their order. */
type Results<Steps extends readonly StepState<unknown>[]> = {
  readonly [At in keyof Steps]: Steps[At] extends StepState<infer T> ? T : never;
};

/**
 * @param run does the step; it gets the results of the steps in `after`
 * @param after steps that have to be done first
 */
export function useStep<T, const Steps extends readonly StepState<unknown>[] = readonly []>(
  run: (caller: Caller, ...results: Results<Steps>) => Promise<T>,
  // Without the parameter, `run` gets no results either.
  after: Steps = [] as unknown as Steps,
): StepState<T> {
  const [kept, setOutcome] = useState<Outcome<T>>();
  const running = useRef(0);
  const basis = after.map(({ stamp }) => stamp).join(" ");
  const isReady = after.every(({ stamp }) => stamp > 0);
  const outcome = kept?.basis === basis ? kept : undefined;

  const start = async (at?: CreatedAt): Promise<void> => {
    if (!isReady || outcome?.status === "running") return;
    lastStamp += 1;
    const stamp = lastStamp;
    running.current = stamp;
    const calls: CallRecord[] = [];
    const finish = (end: Pick<Outcome<T>, "status" | "value" | "failure">): void => {
      // A reader who starts a step again while it runs wants the newer outcome.
      if (running.current === stamp) setOutcome({ ...end, basis, stamp, calls });
    };
    finish({ status: "running" });
    try {
      // The steps are done, so each of them has a result.
      const results = after.map(({ value }) => value) as unknown as Results<Steps>;
      finish({
        status: "done",
        value: await run(
          createCaller((call) => calls.push(call), at),
          ...results,
        ),
      });
    } catch (thrown) {
      finish({ status: "failed", failure: toFailure(thrown) });
    }
  };

  return {
    status: outcome?.status ?? (isReady ? "ready" : "waiting"),
    value: outcome?.value,
    failure: outcome?.failure,
    calls: outcome?.calls ?? [],
    stamp: outcome?.status === "done" ? outcome.stamp : 0,
    start,
  };
}

/** The parts of a step before it runs. */
export interface StepFrameProps<T> {
  readonly step: StepState<T>;
  readonly title: string;
  /** Names the step in its address; made from the title if left out. Must be unique on the page. */
  readonly slug?: string;
  /** The button's text. */
  readonly action: string;
  /** Explains what happens and why. */
  readonly children: ComponentChildren;
  /** Fields for what the reader can choose. */
  readonly fields?: ComponentChildren;
  /** The call that the button makes, if it is known before. */
  readonly plan?: CallRecord;
}

interface StepProps<T> extends StepFrameProps<T> {
  /** Says in one sentence what the step found; a screen reader reads it out. */
  readonly outcome: (value: T) => string;
  /** Shows the result. */
  readonly result?: (value: T) => ComponentChildren;
}

/** Shows a step. */
export function Step<T>({ step, title, slug, action, children, fields, plan, ...shown }: StepProps<T>) {
  const { status, value, failure, calls } = step;
  const { outcome, result } = shown;
  const isDone = status === "done" && value !== undefined;
  const address = useStepAddress(slug ?? toSlug(title));
  const shownCalls = calls.length > 0 ? calls : plan === undefined ? [] : [plan];
  return (
    <li class="step" data-status={status}>
      <StepHeading title={title} {...address} />
      <div class="why">
        {children}
        {fields && <div class="fields">{fields}</div>}
      </div>
      <p class="act">
        <button
          type="button"
          class="primary"
          aria-disabled={status === "waiting" || status === "running"}
          onClick={() => void step.start({ href: address.href, title })}
        >
          {action}
        </button>
        {status === "waiting" && <span class="hint">Do the steps above first.</span>}
        {status === "running" && <span class="hint">Working …</span>}
      </p>
      <p class="outcome" role="status">
        {isDone ? outcome(value) : ""}
      </p>
      {failure && <FailureNote failure={failure} />}
      {isDone && result && <div class="result">{result(value)}</div>}
      <Calls calls={shownCalls} />
    </li>
  );
}

/** Where a step is, and whether the reader has come for it. */
interface StepAddress {
  readonly href: string;
  readonly isNamed: boolean;
}

function useStepAddress(slug: string): StepAddress {
  const address = useAddress();
  const { path = address.path, isShown } = usePlace();
  return {
    href: formatStepAddress(path, slug),
    isNamed: isShown && address.path === path && address.step === slug,
  };
}

/** The title, with a link to copy. A reader who follows the link comes to the step. */
function StepHeading({ title, href, isNamed }: StepAddress & { readonly title: string }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (!isNamed) return;
    heading.current?.scrollIntoView();
    heading.current?.focus({ preventScroll: true });
  }, [isNamed]);
  return (
    <div class="step-heading" data-named={isNamed}>
      <h2 ref={heading} tabIndex={-1}>
        {title}
      </h2>
      <a href={href}>
        <span aria-hidden="true">#</span>
        <span class="unseen">Link to the step “{title}”</span>
      </a>
    </div>
  );
}
