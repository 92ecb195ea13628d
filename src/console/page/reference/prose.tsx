/** Comments of the protos: paragraphs, lists and code, which is all that they have of Markdown. */
import type { ComponentChildren } from "preact";

export function Prose({ text }: { readonly text: string }) {
  return (
    <>
      {text.split(/\n{2,}/).map((block) =>
        block.startsWith("- ") ? (
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
export function Inline({ text }: { readonly text: string }) {
  return (
    <>{text.split("`").map((part, i): ComponentChildren => (i % 2 === 1 ? <code>{part}</code> : part))}</>
  );
}
