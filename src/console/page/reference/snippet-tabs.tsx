/** The call in each language. The choice of a language stays for all calls. */
import { createPreference } from "../preference.ts";
import { CodeBlock } from "./code-block.tsx";
import type { SnippetInput } from "./snippets/input.ts";
import { languageNames, languages } from "./snippets/snippets.ts";

const preferredLanguage = createPreference("qsp-reference-language", languageNames);

export function SnippetTabs({ input }: { readonly input: SnippetInput }) {
  const [language, choose] = preferredLanguage.use();
  return (
    <CodeBlock title="Request" text={languages[language](input)}>
      <fieldset class="ref-tabs">
        <legend class="unseen">Language</legend>
        {languageNames.map((name) => (
          <button key={name} type="button" aria-pressed={name === language} onClick={() => choose(name)}>
            {name}
          </button>
        ))}
      </fieldset>
    </CodeBlock>
  );
}
