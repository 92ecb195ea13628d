/** A story step, declared as one object: its text, its work, its result and its rows in the diagram. */
import type { ComponentChildren } from "preact";
import type { Caller } from "./caller.ts";
import type { CallRecord } from "./calls.ts";
import type { Failure } from "./failure.ts";
import type { Row, StepStatus } from "./parts/diagrams/sequence.ts";

/** A field that the reader can fill in. `S` is the state shared by a story's steps. */
export interface Field<S = unknown> {
  readonly initial: string | (() => string);
  view(bound: BoundField, story: StoryState<S>): ComponentChildren;
}

/** A control's value and change handler. */
interface BoundField {
  readonly value: string;
  readonly onChange: (value: string) => void;
}

export interface Step<T, S = unknown> {
  readonly title: string;
  /** The button's label. */
  readonly action: string;
  /** Explains what happens and why. */
  readonly why: ComponentChildren;
  readonly fields?: Readonly<Record<string, Field<S>>>;
  /** The steps whose results it needs. */
  readonly after?: Readonly<Record<string, Step<unknown, S>>>;
  /** The steps that no longer work once it is done, because it uses up what they need, as it does itself. */
  readonly ends?: readonly Step<unknown, S>[];
  /** The call that the button makes, if it is known in advance. */
  plan?(given: never): CallRecord;
  run(caller: Caller, given: never, shared: S): Promise<T>;
  /** Sums up the result in one sentence, which screen readers announce. */
  says(value: T): string;
  /** Shows the result. */
  shows?(value: T, story: StoryState<S>): ComponentChildren;
  /** Draws the rows of the sequence diagram; without a result, the expected ones. */
  draws?(value: T | undefined): readonly Row[];
}

type Fields<S> = Readonly<Record<string, Field<S>>>;
type Steps<S> = Readonly<Record<string, Step<unknown, S>>>;
type Values<F> = { readonly [Name in keyof F]: string };
type Results<A> = { readonly [Name in keyof A]: ResultOf<A[Name]> };

/** A step's result. */
export type ResultOf<A> = A extends Step<infer T, never> ? T : never;

interface StepDeclaration<T, S, F, A> extends Omit<Step<T, S>, "fields" | "after"> {
  readonly fields?: F;
  readonly after?: A;
  plan?(given: Values<F>): CallRecord;
  /** Called with the field values and the results of earlier steps, by name. */
  run(caller: Caller, given: Values<F> & Results<A>, shared: S): Promise<T>;
}

/**
 * Declares a step. Write `run` before the members that read its result, so that the compiler can infer the
 * type.
 */
export function step<
  T,
  S = unknown,
  const F extends Fields<S> = Record<never, never>,
  const A extends Steps<S> = Record<never, never>,
>(declaration: StepDeclaration<T, S, F, A>): StepDeclaration<T, S, F, A> {
  return declaration;
}

/** A step's outcome. */
export interface Outcome {
  readonly status: "running" | "done" | "failed";
  /** Identifies the other steps' results that it used. */
  readonly basis: string;
  /** Distinguishes successive outcomes. */
  readonly stamp: number;
  readonly value?: unknown;
  readonly failure?: Failure;
  readonly calls: readonly CallRecord[];
}

export type Outcomes = ReadonlyMap<Step<unknown>, Outcome>;

/** A step's progress. */
export interface StepState<T = unknown> {
  readonly status: StepStatus;
  /** The result, once the step is done. */
  readonly value: T | undefined;
  readonly failure: Failure | undefined;
  readonly calls: readonly CallRecord[];
}

/** A story's current state, as the reader sees it. */
export interface StoryState<S = unknown> {
  readonly shared: S;
  /** A step's status. */
  at<T>(step: Step<T, S>): StepState<T>;
  /** A step's result; undefined until it is done. */
  read<T>(step: Step<T, S>): T | undefined;
  /** The done step that ended a step; undefined if none did. */
  endOf(step: Step<unknown, S>): Step<unknown, S> | undefined;
  /** The step that ran last. */
  readonly latest: Step<unknown, S> | undefined;
  /**
   * Runs a step, unless it is running, or a step that it needs is not done, or one has ended it.
   *
   * @returns whether it is done
   */
  start(step: Step<unknown, S>): Promise<boolean>;
  valueIn(field: Field<S>): string;
  fill(field: Field<S>, value: string): void;
}

/** Identifies the results that a step uses; undefined if one is missing. */
export function findBasis({ after = {} }: Step<unknown>, outcomes: Outcomes): string | undefined {
  const stamps = Object.values(after).map((before) => findOutcome(before, outcomes));
  return stamps.every((outcome) => outcome?.status === "done")
    ? stamps.map((outcome) => outcome?.stamp).join(" ")
    : undefined;
}

/** A step's outcome; undefined once an earlier step has run again. */
export function findOutcome(one: Step<unknown>, outcomes: Outcomes): Outcome | undefined {
  const outcome = outcomes.get(one);
  return outcome?.basis === findBasis(one, outcomes) ? outcome : undefined;
}

/** The done step that ended a step. */
export function findEnd(one: Step<unknown>, outcomes: Outcomes): Step<unknown> | undefined {
  return [...outcomes.keys()].find(
    (other) =>
      other.ends !== undefined &&
      [other, ...other.ends].includes(one) &&
      findOutcome(other, outcomes)?.status === "done",
  );
}

/** The step that ran last. */
export function findLatest(outcomes: Outcomes): Step<unknown> | undefined {
  const entries = [...outcomes].toSorted(([, one], [, other]) => other.stamp - one.stamp);
  return entries.find(([step]) => findOutcome(step, outcomes) !== undefined)?.[0];
}
