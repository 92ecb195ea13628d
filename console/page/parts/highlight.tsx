/**
 * Syntax-highlighted code: strings, numbers, keywords and comments. One pattern serves JSON and all snippet
 * languages.
 */
import type { ComponentChildren } from "preact";

const pattern =
  /("(?:[^"\\\n]|\\.)*"(?=\s*:)|"(?:[^"\\\n]|\\.)*"|`[^`]*`|'[^']*')|((?<![\w.:/-])\d+(?:\.\d+)?(?![\w.:-]))|\b(const|await|if|throw|new|for|of|in|import|package|func|defer|nil|return|from|true|false|null|None|True|False)\b/g;

/** Longer texts are not highlighted. */
const maxLength = 40_000;

export function Highlight({ text }: { readonly text: string }) {
  if (text.length > maxLength) return <>{text}</>;
  const parts: ComponentChildren[] = [];
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    const [whole, quoted, number] = match;
    parts.push(text.slice(end, match.index));
    const kind = quoted !== undefined ? "text" : number !== undefined ? "number" : "word";
    parts.push(
      <span key={match.index} data-kind={kind}>
        {whole}
      </span>,
    );
    end = match.index + whole.length;
  }
  parts.push(text.slice(end));
  return <>{parts}</>;
}
