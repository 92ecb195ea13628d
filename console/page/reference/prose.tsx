/** Proto comments: paragraphs, lists and code, the only Markdown that they use. */
import type { ComponentChildren } from "preact";

export function Prose({ text }: { readonly text: string }) {
  return (
    <>
      {text.split(/\n{2,}/).map((block) =>
        block.startsWith("    ") ? (
          // It scrolls, so it must be reachable by keyboard.
          // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling block needs the focus (WCAG 2.1.1)
          <pre key={block} class="code" tabIndex={0}>
            {block.replace(/^ {4}/gm, "")}
          </pre>
        ) : block.startsWith("- ") ? (
          <ul key={block}>
            {block.split(/\n(?=- )/).map((item) => (
              <li key={item}>
                <Inline text={item.slice(2)} />
              </li>
            ))}
          </ul>
        ) : (
          <p key={block}>
            <Inline text={block} />
          </p>
        ),
      )}
    </>
  );
}

/** A line with code in backticks. */
function Inline({ text }: { readonly text: string }) {
  return (
    <>{text.split("`").map((part, i): ComponentChildren => (i % 2 === 1 ? <code>{part}</code> : part))}</>
  );
}
