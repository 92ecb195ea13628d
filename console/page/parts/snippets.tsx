/** Shows how to make a call: in a shell, and in programs. */
import type { CallRecord } from "../calls.ts";
import { preferredLanguage } from "../preferred-language.ts";
import { describeCall } from "../snippets/call.ts";
import { tokenVariable } from "../snippets/input.ts";
import { type LanguageName, languageNames, languages } from "../snippets/languages.ts";
import { CopyButton } from "./copy-button.tsx";
import { Scroller } from "./scroller.tsx";

export function Snippets({ call }: { readonly call: CallRecord }) {
  const [name, choose] = preferredLanguage.use();
  const { write, trust, file, run } = languages[name];
  const { origin } = location;
  const shown = write(describeCall(call, origin, true));
  const whole = write(describeCall(call, origin));
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
        <CopyButton text={whole} what={nameCopy(name)} />
      </div>
      <Scroller class={file === undefined ? "code" : "code program"} label={nameCopy(name)}>
        <pre>{shown}</pre>
      </Scroller>
      {shown !== whole && <p class="hint">Long values are shortened here. The copy contains them in full.</p>}
      {call.token !== undefined && (
        <p class="hint">
          It reads the token of this call from the variable <code>{tokenVariable}</code>.{" "}
          <CopyButton text={call.token} what="token" isNamed />
        </p>
      )}
      {origin.startsWith("https:") && (
        <p class="hint">
          If the server's certificate is of a private CA, set <code>{trust}</code> to the file of the CA.
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

function nameCopy(name: LanguageName): string {
  return `${name} ${languages[name].file === undefined ? "command" : "program"}`;
}
