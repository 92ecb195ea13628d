/** Shows one step of a story: the explanation, a button and the result. */
import { useEffect, useRef } from "preact/hooks";
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
  const result = isDone && step.shows?.(value, story);
  return (
    <li class="step" data-status={status}>
      <StepHeading title={title} {...useStepAddress(toSlug(title))} />
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
          aria-disabled={status === "waiting" || status === "running"}
          onClick={() => void story.start(step)}
        >
          {action}
        </button>
        {status === "waiting" && <span class="hint">Complete the steps above first.</span>}
        {status === "running" && <span class="hint">Working …</span>}
      </p>
      <p class="outcome" role="status">
        {isDone ? step.says(value) : ""}
      </p>
      {failure && <FailureNote failure={failure} />}
      {result && <div class="result">{result}</div>}
      <Calls calls={calls.length > 0 ? calls : planCalls(step, story)} />
    </li>
  );
}

function planCalls<S>({ plan, fields = {}, reads = {} }: Step<unknown, S>, { valueIn }: StoryState<S>) {
  const values = Object.entries({ ...fields, ...reads }).map(([name, field]) => [name, valueIn(field)]);
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

/** The title with a link to copy. The link leads to the step. */
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
