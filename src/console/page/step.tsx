/**
 * A step of a story: what happens and why, a button, and what came of it.
 *
 * useStep holds what a step does and what it gave; Step shows it. A step that needs the result of others names them,
 * waits for them, and is empty again when they are done anew.
 */
import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { type CallOptions, type CallRecord, makeCall } from "./calls.ts";
import { Failure, toFailure } from "./failure.ts";
import { Calls } from "./parts/call-view.tsx";
import { FailureNote } from "./parts/failure-note.tsx";

/** Makes calls for a step, which then shows them. */
export interface Caller {
  /** @throws Failure */
  call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    options?: CallOptions,
  ): Promise<MessageShape<O>>;
  /** Makes a call that the server is to refuse, and gives the refusal. @throws Failure if the server does not refuse. */
  callRefused<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    options?: CallOptions,
  ): Promise<Failure>;
}

/** Where a step stands. */
export interface StepState<T> {
  readonly status: "waiting" | "ready" | "running" | "done" | "failed";
  /** What it gave, once it is done. */
  readonly value: T | undefined;
  readonly failure: Failure | undefined;
  readonly calls: readonly CallRecord[];
  /** Tells one outcome from the next; 0 while there is none. */
  readonly stamp: number;
  start(): Promise<void>;
}

interface Outcome<T> {
  readonly status: "running" | "done" | "failed";
  /** Outcomes of other steps that it rests on. */
  readonly basis: string;
  readonly stamp: number;
  readonly value?: T;
  readonly failure?: Failure;
  readonly calls: readonly CallRecord[];
}

let lastStamp = 0;

/**
 * @param run does the step; whatever it needs of other steps it reads from their `value`
 * @param after steps that have to be done first
 */
export function useStep<T>(
  run: (caller: Caller) => Promise<T>,
  after: readonly StepState<unknown>[] = [],
): StepState<T> {
  const [kept, setOutcome] = useState<Outcome<T>>();
  const running = useRef(0);
  const basis = after.map(({ stamp }) => stamp).join(" ");
  const isReady = after.every(({ stamp }) => stamp > 0);
  const outcome = kept?.basis === basis ? kept : undefined;

  const start = async (): Promise<void> => {
    if (!isReady || outcome?.status === "running") return;
    lastStamp += 1;
    const stamp = lastStamp;
    running.current = stamp;
    const calls: CallRecord[] = [];
    const finish = (end: Pick<Outcome<T>, "status" | "value" | "failure">): void => {
      // Who starts a step anew while it runs wants the newer outcome.
      if (running.current === stamp) setOutcome({ ...end, basis, stamp, calls });
    };
    finish({ status: "running" });
    try {
      finish({ status: "done", value: await run(createCaller(calls)) });
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

function createCaller(calls: CallRecord[]): Caller {
  return {
    async call(method, request, options) {
      const { record, answer, failure } = await makeCall(method, request, options);
      calls.push(record);
      if (answer === undefined) throw failure;
      return answer;
    },
    async callRefused(method, request, options) {
      const { record, failure } = await makeCall(method, request, options);
      calls.push(record);
      if (failure !== undefined) return failure;
      throw new Failure("NOT_REFUSED", "OK", "The server took a call that it should have refused.");
    },
  };
}

interface StepProps<T> {
  readonly step: StepState<T>;
  readonly title: string;
  /** What the button says. */
  readonly action: string;
  /** What happens and why; and fields for what the reader can choose. */
  readonly children?: ComponentChildren;
  /** The call that the button will make, if it is known before. */
  readonly plan?: CallRecord | undefined;
  /** Says in one sentence what came of it; read out by a screen reader. */
  readonly outcome: (value: T) => string;
  /** Shows what came of it. */
  readonly result?: (value: T) => ComponentChildren;
}

/** Shows a step. */
export function Step<T>({ step, title, action, children, plan, outcome, result }: StepProps<T>) {
  const { status, value, failure, calls } = step;
  const isDone = status === "done" && value !== undefined;
  const shownCalls = calls.length > 0 ? calls : plan === undefined ? [] : [plan];
  return (
    <li class="step" data-status={status}>
      <h2>{title}</h2>
      <div class="why">{children}</div>
      <p class="act">
        <button
          type="button"
          class="primary"
          aria-disabled={status === "waiting" || status === "running"}
          onClick={() => void step.start()}
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

/** What a step gave. @throws Error if it is not done, which can not be within a step that comes after it */
export function requireResult<T>({ value }: StepState<T>): T {
  if (value === undefined) throw new Error("a step ran before the one that it needs");
  return value;
}
