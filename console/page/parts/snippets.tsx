/** Shows code for a call: in a shell, and in several languages. */
import { createPreference } from "../preference.ts";
import { type SnippetInput, tokenVariable } from "../snippets/input.ts";
import { type LanguageName, languageNames, languages } from "../snippets/languages.ts";
import { CopyButton } from "./copy-button.tsx";
import { Highlight } from "./highlight.tsx";
import { Scroller } from "./scroller.tsx";

const preferredLanguage = createPreference<LanguageName>("qsp-language", languageNames);

interface SnippetsProps {
  /** The call with complete values, for copying. */
  readonly input: SnippetInput;
  /** The call as displayed. */
  readonly shown?: SnippetInput;
  /** The token that the call used, for copying. */
  readonly token?: string | undefined;
}

export function Snippets({ input, shown = input, token }: SnippetsProps) {
  const [name, choose] = preferredLanguage.use();
  const { write, trust, file, run } = languages[name];
  const whole = write(input);
  const text = write(shown);
  const title = `${name} ${file === undefined ? "command" : "program"}`;
  return (
    <div class="commands">
      <div class="bar">
        {languageNames.map((language) => (
          <button
            key={language}
            type="button"
            aria-pressed={language === name}
            onClick={() => choose(language)}
          >
            {language}
          </button>
        ))}
        <CopyButton text={whole} what={title} />
      </div>
      <Scroller class={file === undefined ? "code" : "code program"} label={title}>
        <pre>
          <Highlight text={text} />
        </pre>
      </Scroller>
      {text !== whole && <p class="hint">Long values are shortened here; the copy is complete.</p>}
      {token !== undefined && (
        <p class="hint">
          It reads this call's token from the variable <code>{tokenVariable}</code>.{" "}
          <CopyButton text={token} what="token" isNamed />
        </p>
      )}
      {location.protocol === "https:" && (
        <p class="hint">
          If a private CA issued the server's certificate, set <code>{trust}</code> to the CA's file.
        </p>
      )}
      {file !== undefined && (
        <p class="hint">
          Save it as <code>{file}</code>, then run <code>{run}</code>
        </p>
      )}
    </div>
  );
}
