/** A block of code with its name, and a button that copies it. */
import type { ComponentChildren } from "preact";
import { CopyButton } from "../parts/copy-button.tsx";
import { Highlight } from "./highlight.tsx";

interface CodeBlockProps {
  /** Names the code: "Answer". */
  readonly title: string;
  readonly text: string;
  /** Stands beside the title. */
  readonly children?: ComponentChildren;
}

export function CodeBlock({ title, text, children }: CodeBlockProps) {
  return (
    <section class="ref-code" aria-label={title}>
      <div class="ref-bar">
        <h2>{title}</h2>
        {children}
        <CopyButton text={text} what={title.toLowerCase()} />
      </div>
      {/* It scrolls, so the keyboard has to reach it. */}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a block that scrolls needs the focus (WCAG 2.1.1) */}
      <pre tabIndex={0}>
        <Highlight text={text} />
      </pre>
    </section>
  );
}
