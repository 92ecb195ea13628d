/** The call in each language. The choice of a language stays for all calls. */
import { useState } from "preact/hooks";
import { CodeBlock } from "./code-block.tsx";
import type { SnippetInput } from "./snippets/input.ts";
import { languages } from "./snippets/snippets.ts";

const storageName = "qsp-reference-language";
const names = Object.keys(languages);

export function SnippetTabs({ input }: { readonly input: SnippetInput }) {
  const [language, setLanguage] = useState(() => localStorage.getItem(storageName) ?? "curl");
  const write = languages[language] ?? languages.curl;
  const choose = (name: string): void => {
    localStorage.setItem(storageName, name);
    setLanguage(name);
  };
  return (
    <CodeBlock title="Request" text={write?.(input) ?? ""}>
      <fieldset class="ref-tabs">
        <legend class="unseen">Language</legend>
        {names.map((name) => (
          <button key={name} type="button" aria-pressed={name === language} onClick={() => choose(name)}>
            {name}
          </button>
        ))}
      </fieldset>
    </CodeBlock>
  );
}
