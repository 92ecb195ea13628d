/** A titled block of code with a copy button. */
import type { ComponentChildren } from "preact";
import { CopyButton } from "./copy-button.tsx";
import { Highlight } from "./highlight.tsx";
import { Scroller } from "./scroller.tsx";

interface CodeBlockProps {
  /** The title: "Answer". */
  readonly title: string;
  readonly text: string;
  /** The text to copy, if the displayed text is shortened. */
  readonly whole?: string;
  /** Content beside the title. */
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
