/** A story's page: heading, introduction, diagram and an ordered list of steps. */

import type { ComponentChildren } from "preact";
import { usePlace } from "./kept-pages.tsx";
import { Scene } from "./parts/diagrams/scene.tsx";
import type { Act, Party } from "./parts/diagrams/sequence.ts";
import { SequenceDiagram } from "./parts/diagrams/sequence-diagram.tsx";
import { Lead } from "./parts/lead.tsx";
import { StepView } from "./step.tsx";
import { StoryProgress } from "./story-progress.tsx";
import type { Step, StoryState } from "./story-step.ts";
import { useStory } from "./use-story.ts";

interface StoryDeclaration<S> {
  readonly title: string;
  /** Introduces the story and names its standards. */
  readonly lead: ComponentChildren;
  readonly steps: readonly Step<unknown, S>[];
  /** The sequence diagram's parties, for a story whose steps draw one. */
  readonly parties?: readonly Party[];
  /** A different diagram. */
  readonly scene?: { readonly title: string; shows(story: StoryState<S>): ComponentChildren };
  /** State that the steps share, such as a stream. */
  readonly useShared: () => S;
}

/** Creates the page of a story whose steps share state. */
export function defineSharedStory<S>({ useShared, ...declaration }: StoryDeclaration<S>) {
  return function Page() {
    return <StoryView {...declaration} story={useStory(useShared())} />;
  };
}

/** Creates a story's page. */
export function defineStory(declaration: Omit<StoryDeclaration<unknown>, "useShared">) {
  return defineSharedStory({ ...declaration, useShared: () => undefined });
}

interface StoryViewProps<S> extends Omit<StoryDeclaration<S>, "useShared"> {
  readonly story: StoryState<S>;
}

function StoryView<S>({ title, lead, steps, parties, scene, story }: StoryViewProps<S>) {
  return (
    <>
      <Lead title={title}>{lead}</Lead>
      <ol class="steps">
        {parties && (
          <SequenceDiagram title="Who sends what" parties={parties} acts={drawActs(steps, story)} />
        )}
        {scene && <Scene title={scene.title}>{scene.shows(story)}</Scene>}
        {steps.map((step) => (
          <StepView key={step.title} step={step} story={story} />
        ))}
      </ol>
      <StoryProgress steps={steps} story={story} />
      <StartAgain />
    </>
  );
}

function drawActs<S>(steps: readonly Step<unknown, S>[], story: StoryState<S>): readonly Act[] {
  return steps.map((step) => {
    const { status, failure, value } = story.at(step);
    return { title: step.title, status, failure: failure?.reason, rows: step.draws?.(value) ?? [] };
  });
}

function StartAgain() {
  const { startAgain } = usePlace();
  if (startAgain === undefined) return null;
  const start = (): void => {
    startAgain();
    scrollTo(0, 0);
    // The button was removed together with its story.
    document.getElementById("main")?.focus({ preventScroll: true });
  };
  return (
    <p class="start-again">
      <button type="button" onClick={start}>
        Restart this story
      </button>{" "}
      <span class="hint">This clears the results. What you created on the server remains.</span>
    </p>
  );
}
