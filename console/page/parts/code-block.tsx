/** A block of code with its name, and a button that copies it. */
import type { ComponentChildren } from "preact";
import { CopyButton } from "./copy-button.tsx";
import { Highlight } from "./highlight.tsx";
import { Scroller } from "./scroller.tsx";

interface CodeBlockProps {
  /** Names the code: "Answer". */
  readonly title: string;
  readonly text: string;
  /** What is copied, if the text leaves out parts of it. */
  readonly whole?: string;
  /** Stands beside the title. */
  readonly children?: ComponentChildren;
}

export function CodeBlock({ title, text, whole = text, children }: CodeBlockProps) {
  return (
    <>
      <div class="bar">
        <h3>{title}</h3>
        {children}
        <CopyButton text={whole} what={title.toLowerCase()} />
      </div>
      <Scroller class="code" label={title}>
        <pre>
          <Highlight text={text} />
        </pre>
      </Scroller>
    </>
  );
}
