/** The call in each language. */
import { preferredLanguage } from "../preferred-language.ts";
import type { SnippetInput } from "../snippets/input.ts";
import { languageNames, languages } from "../snippets/languages.ts";
import { CodeBlock } from "./code-block.tsx";

export function SnippetTabs({ input }: { readonly input: SnippetInput }) {
  const [language, choose] = preferredLanguage.use();
  return (
    <CodeBlock title="Request" text={languages[language].write(input)}>
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
