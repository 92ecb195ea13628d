/** Shows one step of a story: the explanation, a button and the result; one line while it is locked or folded. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { formatStepAddress, toSlug } from "./address.ts";
import { usePlace } from "./kept-pages.tsx";
import { Calls } from "./parts/call-view.tsx";
import { FailureNote } from "./parts/failure-note.tsx";
import type { Step, StoryState } from "./story-step.ts";
import { useAddress } from "./use-address.ts";

interface StepViewProps<S> {
  readonly step: Step<unknown, S>;
  readonly story: StoryState<S>;
}

export function StepView<S>({ step, story }: StepViewProps<S>) {
  const { title, action, why, fields = {} } = step;
  const { status, value, failure, calls } = story.at(step);
  const isDone = status === "done";
  const end = story.endOf(step);
  const address = useStepAddress(toSlug(title));
  // A finished step folds when the next one runs, unless the reader opens it.
  const [isOpened, open] = useState<boolean>();
  const isLatest = story.latest === step;
  useEffect(() => open(undefined), [isLatest]);
  const isFolded = isDone && !(isOpened ?? (isLatest || address.isNamed));
  const isHidden = isFolded || status === "waiting";
  const result = isDone && step.shows?.(value, story);
  return (
    <li class="step" data-status={status}>
      <StepHeading title={title} {...address}>
        {status === "waiting" && <span class="unseen">Complete the steps above first.</span>}
        {isDone && (
          <button type="button" class="fold" aria-expanded={!isFolded} onClick={() => open(isFolded)}>
            {isFolded ? "Details" : "Fold"}
            <span class="unseen"> of “{title}”</span>
          </button>
        )}
      </StepHeading>
      <div hidden={isHidden}>
        <div class="why">
          {typeof why === "string" ? <p>{why}</p> : why}
          {step.fields && (
            <div class="fields">
              {Object.values(fields).map((field) =>
                field.view(
                  { value: story.valueIn(field), onChange: (typed) => story.fill(field, typed) },
                  story,
                ),
              )}
            </div>
          )}
        </div>
        <p class="act">
          <button
            type="button"
            class="primary"
            aria-disabled={end !== undefined || status === "running"}
            onClick={() => void story.start(step)}
          >
            {status === "failed" ? "Try again" : action}
          </button>
          {end && <span class="hint">“{end.title}” is done. Restart the story to do this again.</span>}
          {status === "running" && <span class="hint">Working …</span>}
        </p>
      </div>
      <p class="outcome" role="status">
        {isDone ? step.says(value) : ""}
      </p>
      {failure && <FailureNote failure={failure} />}
      <div hidden={isHidden}>
        {result && <div class="result">{result}</div>}
        <Calls calls={calls.length > 0 ? calls : planCalls(step, story)} />
      </div>
    </li>
  );
}

function planCalls<S>({ plan, fields = {} }: Step<unknown, S>, { valueIn }: StoryState<S>) {
  const values = Object.entries(fields).map(([name, field]) => [name, valueIn(field)]);
  // The values match the step's declaration.
  return plan === undefined ? [] : [plan(Object.fromEntries(values) as never)];
}

/** A step's address, and whether the reader followed a link to it. */
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

interface StepHeadingProps extends StepAddress {
  readonly title: string;
  readonly children: ComponentChildren;
}

/** The title with a link to copy. The link leads to the step. */
function StepHeading({ title, href, isNamed, children }: StepHeadingProps) {
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
      {children}
    </div>
  );
}

/**
 * Scrolls a step into view and focuses its button, or its heading if that is all it shows.
 *
 * @param title the step's heading
 */
export function showStep(title: string): void {
  const step = scrollToStep(title);
  step?.querySelector<HTMLElement>("h2")?.focus({ preventScroll: true });
  step?.querySelector<HTMLElement>(".act button")?.focus({ preventScroll: true });
}

/** Scrolls a step into view, and leaves the focus where it is. */
export function scrollToStep(title: string): Element | undefined {
  const steps = [...document.querySelectorAll("li.step")];
  const step = steps.find((one) => one.querySelector("h2")?.textContent === title);
  step?.scrollIntoView({ block: "nearest" });
  return step;
}
