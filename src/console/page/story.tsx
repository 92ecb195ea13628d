/** The frame of a story: its heading, what it is about, and its steps in an ordered list. */
import type { ComponentChildren } from "preact";
import { usePlace } from "./kept-pages.tsx";

interface StoryProps {
  readonly title: string;
  /** Introduces the story, and names its standards. */
  readonly lead: ComponentChildren;
  /** Steps. */
  readonly children: ComponentChildren;
  /** The content below the steps. */
  readonly after?: ComponentChildren;
}

export function Story({ title, lead, children, after }: StoryProps) {
  return (
    <>
      <header class="lead">
        <h1 tabIndex={-1}>{title}</h1>
        <p>{lead}</p>
      </header>
      <ol class="steps">{children}</ol>
      {after}
      <StartAgain />
    </>
  );
}

function StartAgain() {
  const { startAgain } = usePlace();
  if (startAgain === undefined) return null;
  const start = (): void => {
    startAgain();
    scrollTo(0, 0);
    // The button is gone with the story that it was in.
    document.getElementById("main")?.focus({ preventScroll: true });
  };
  return (
    <p class="start-again">
      <button type="button" onClick={start}>
        Start this story again
      </button>{" "}
      <span class="hint">The page forgets the results. What you created on the server remains.</span>
    </p>
  );
}
