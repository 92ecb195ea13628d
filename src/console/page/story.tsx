/** The frame of a story: its heading, what it is about, and its steps in an ordered list. */
import type { ComponentChildren } from "preact";

interface StoryProps {
  readonly title: string;
  /** What the reader will see, and which standards it is of. */
  readonly lead: ComponentChildren;
  /** Steps. */
  readonly children: ComponentChildren;
  /** What is below the steps. */
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
    </>
  );
}
