/** A step of a story, declared as one object: what it says, what it does, what it shows, and what its diagram draws. */
import type { ComponentChildren } from "preact";
import type { Caller } from "./caller.ts";
import type { CallRecord } from "./calls.ts";
import type { Failure } from "./failure.ts";
import type { Row, StepStatus } from "./parts/diagrams/sequence.ts";

/** A field that the reader can fill in. `S` is what the steps of a story share. */
export interface Field<S = unknown> {
  readonly initial: string | (() => string);
  view(bound: BoundField, story: StoryState<S>): ComponentChildren;
}

/** The properties of a control: its value, and the handler of a new one. */
export interface BoundField {
  readonly value: string;
  readonly onChange: (value: string) => void;
}

export interface Step<T, S = unknown> {
  readonly title: string;
  /** The text of its button. */
  readonly action: string;
  /** Explains what happens and why. */
  readonly why: ComponentChildren;
  readonly fields?: Readonly<Record<string, Field<S>>>;
  /** Fields of other steps that it reads. */
  readonly reads?: Readonly<Record<string, Field<S>>>;
  /** The steps whose results it needs. */
  readonly after?: Readonly<Record<string, Step<unknown, S>>>;
  /** The call that the button makes, if it is known before. */
  plan?(given: never): CallRecord;
  run(caller: Caller, given: never, shared: S): Promise<T>;
  /** Says in one sentence what the step found; a screen reader reads it out. */
  says(value: T): string;
  /** Shows the result. */
  shows?(value: T, story: StoryState<S>): ComponentChildren;
  /** Draws the rows of the sequence diagram; without a value, as they are expected. */
  draws?(value: T | undefined): readonly Row[];
}

type Fields<S> = Readonly<Record<string, Field<S>>>;
type Steps<S> = Readonly<Record<string, Step<unknown, S>>>;
type Values<F> = { readonly [Name in keyof F]: string };
type Results<A> = { readonly [Name in keyof A]: ResultOf<A[Name]> };

/** What a step comes to. */
export type ResultOf<A> = A extends Step<infer T, never> ? T : never;

interface StepDeclaration<T, S, F, R, A> extends Omit<Step<T, S>, "fields" | "reads" | "after"> {
  readonly fields?: F;
  readonly reads?: R;
  readonly after?: A;
  plan?(given: Values<F & R>): CallRecord;
  /** Gets the values of the fields and the results of the steps before it, by their names. */
  run(caller: Caller, given: Values<F & R> & Results<A>, shared: S): Promise<T>;
}

/** Declares a step. Write `run` before what reads its result, from which the compiler learns the type. */
export function step<
  T,
  S = unknown,
  const F extends Fields<S> = Record<never, never>,
  const R extends Fields<S> = Record<never, never>,
  const A extends Steps<S> = Record<never, never>,
>(declaration: StepDeclaration<T, S, F, R, A>): StepDeclaration<T, S, F, R, A> {
  return declaration;
}

/** What came of a step. */
export interface Outcome {
  readonly status: "running" | "done" | "failed";
  /** Identifies the results of other steps that it used. */
  readonly basis: string;
  /** Distinguishes one outcome from the next. */
  readonly stamp: number;
  readonly value?: unknown;
  readonly failure?: Failure;
  readonly calls: readonly CallRecord[];
}

export type Outcomes = ReadonlyMap<Step<unknown>, Outcome>;

/** Where a step stands. */
export interface StepState<T = unknown> {
  readonly status: StepStatus;
  /** The result, once the step is done. */
  readonly value: T | undefined;
  readonly failure: Failure | undefined;
  readonly calls: readonly CallRecord[];
}

/** A story as the reader sees it now. */
export interface StoryState<S = unknown> {
  readonly shared: S;
  /** The state of a step. */
  at<T>(step: Step<T, S>): StepState<T>;
  /** The result of a step; undefined until it is done. */
  read<T>(step: Step<T, S>): T | undefined;
  start(step: Step<unknown, S>): Promise<void>;
  valueIn(field: Field<S>): string;
  fill(field: Field<S>, value: string): void;
}

/** Identifies the results that a step uses; undefined as long as one is missing. */
export function findBasis({ after = {} }: Step<unknown>, outcomes: Outcomes): string | undefined {
  const stamps = Object.values(after).map((before) => findOutcome(before, outcomes));
  return stamps.every((outcome) => outcome?.status === "done")
    ? stamps.map((outcome) => outcome?.stamp).join(" ")
    : undefined;
}

/** The outcome of a step. When a step before it runs again, it has none. */
export function findOutcome(one: Step<unknown>, outcomes: Outcomes): Outcome | undefined {
  const outcome = outcomes.get(one);
  return outcome?.basis === findBasis(one, outcomes) ? outcome : undefined;
}
