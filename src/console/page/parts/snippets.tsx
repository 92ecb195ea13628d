/** Shows how to make a call: in a shell, and in programs. */
import type { CallRecord } from "../calls.ts";
import { createPreference } from "../preference.ts";
import { tokenVariable } from "../snippets/call.ts";
import { type LanguageName, languageNames, languages } from "../snippets/languages.ts";
import { CopyButton } from "./copy-button.tsx";
import { Scroller } from "./scroller.tsx";

const preferredLanguage = createPreference<LanguageName>("qsp-language", languageNames);

export function Snippets({ call }: { readonly call: CallRecord }) {
  const [name, choose] = preferredLanguage.use();
  const { write, trust } = languages[name];
  const { origin } = location;
  const shown = write(call, { origin, isShort: true });
  const whole = write(call, { origin });
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
        {whole !== undefined && <CopyButton text={whole} what={nameCopy(name)} />}
      </div>
      {shown === undefined ? (
        <p>This call has no REST form; use grpcurl.</p>
      ) : (
        <Scroller class={languages[name].file === undefined ? "code" : "code program"} label={nameCopy(name)}>
          <pre>{shown}</pre>
        </Scroller>
      )}
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
      <SetUp name={name} />
    </div>
  );
}

function nameCopy(name: LanguageName): string {
  return `${name} ${languages[name].file === undefined ? "command" : "program"}`;
}

function SetUp({ name }: { readonly name: LanguageName }) {
  const { setUp, file, run } = languages[name];
  if (file === undefined || run === undefined) return null;
  const lines = setUp(location.origin).join("\n");
  return (
    <details class="set-up">
      <summary>Set up {name}, one time</summary>
      <div class="bar">
        <span class="hint">In an empty folder:</span>
        <CopyButton text={lines} what={`set-up of ${name}`} />
      </div>
      <pre class="code">{lines}</pre>
      <p>
        Save the program above as <code>{file}</code>, then run <code>{run}</code>
      </p>
    </details>
  );
}
