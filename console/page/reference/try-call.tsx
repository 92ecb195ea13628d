/** The form that makes the call on this server, and its answer. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type Session, setSession } from "../session.ts";
import { parseJson } from "../snippets/input.ts";
import { CodeBlock } from "./code-block.tsx";
import { needsToken, type Operation } from "./document.ts";
import { buildHttp, type Draft, listMissing } from "./request.ts";
import { type Sent, send } from "./send.ts";

interface TryCallProps {
  readonly operation: Operation;
  readonly draft: Draft;
  readonly onDraft: (draft: Draft) => void;
  readonly session: Session | undefined;
  /** Stands above the form. */
  readonly children?: ComponentChildren;
}

/** The reasons for which the server will never take the token again. */
const deadToken = /"TOKEN_(?:EXPIRED|REVOKED|KEY_UNKNOWN)"/;

export function TryCall({ operation, draft, onDraft, session, children }: TryCallProps) {
  const [sent, setSent] = useState<Sent>();
  const [fault, setFault] = useState("");
  const [isBusy, setBusy] = useState(false);
  const abort = useRef<AbortController>(undefined);
  // A stream ends with the page of its call.
  useEffect(() => () => abort.current?.abort(), []);

  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    const problem = findFault(operation, draft);
    setFault(problem);
    if (problem !== "") return;
    abort.current?.abort();
    const mine = new AbortController();
    abort.current = mine;
    setBusy(true);
    setSent(undefined);
    try {
      await send(buildHttp(operation, draft, location.origin), session?.token, mine.signal, (part) => {
        if (abort.current !== mine) return;
        setSent(part);
        // Without it, the page shows that the reader has to log in again.
        if (part.status === 401 && deadToken.test(part.text)) setSession(undefined);
      });
    } catch (thrown) {
      if (!mine.signal.aborted)
        setFault(thrown instanceof TypeError ? "The server could not be reached." : String(thrown));
    }
    if (abort.current === mine) setBusy(false);
  };

  return (
    <section class="ref-try" aria-label="Try the call">
      <form onSubmit={(event) => void submit(event)}>
        <h2>Try it</h2>
        {needsToken(operation) && session === undefined && (
          <p class="hint">This call needs a token. Log in first.</p>
        )}
        {children}
        <Inputs {...{ operation, draft, onDraft }} />
        <p class="ref-act">
          <button type="submit" class="primary" aria-disabled={isBusy}>
            Send
          </button>
          {isBusy && (
            <button
              type="button"
              onClick={() => {
                abort.current?.abort();
                setBusy(false);
              }}
            >
              Stop
            </button>
          )}
          <span class="hint">{sayCaller(operation, session)}</span>
        </p>
        {fault !== "" && <p role="alert">{fault}</p>}
      </form>
      {sent !== undefined && (
        <div class="ref-sent" data-ok={sent.status < 400}>
          <p role="status" class="ref-status">
            <strong>
              {sent.status} {sent.statusText}
            </strong>{" "}
            <span class="hint">
              {sent.durationMs.toFixed(0)} ms, {sent.byteCount.toLocaleString("en")} bytes
              {sent.state === "cut" && ", the rest is not shown"}
              {sent.state === "open" && isBusy && ", waiting for more"}
            </span>
          </p>
          <CodeBlock title="Answer of the server" text={sent.text} />
        </div>
      )}
    </section>
  );
}

function Inputs({ operation, draft, onDraft }: Pick<TryCallProps, "operation" | "draft" | "onDraft">) {
  const set = (name: string, value: string): void =>
    onDraft({ ...draft, parameters: { ...draft.parameters, [name]: value } });
  return (
    <>
      {operation.parameters.map(({ name, in: place, required, schema }) => (
        <label key={name} class="ref-input">
          <span>
            <code>{name}</code> <span class="hint">{place}</span>
            {required === true && <span class="ref-required"> required</span>}
          </span>
          <input
            type="text"
            autocomplete="off"
            spellcheck={false}
            placeholder={schema?.enum?.join(" | ")}
            value={draft.parameters[name] ?? ""}
            onInput={(event) => set(name, event.currentTarget.value)}
          />
        </label>
      ))}
      {draft.body !== undefined && (
        <label class="ref-input">
          <span>
            Body <span class="hint">JSON</span>
          </span>
          <textarea
            spellcheck={false}
            autocomplete="off"
            rows={Math.min(14, draft.body.split("\n").length + 1)}
            value={draft.body}
            onInput={(event) => onDraft({ ...draft, body: event.currentTarget.value })}
          />
        </label>
      )}
    </>
  );
}

function sayCaller(operation: Operation, session: Session | undefined): string {
  if (needsToken(operation))
    return `Calls this server${session === undefined ? "" : ` as ${session.username}`}.`;
  // Where a token is not needed, the server ignores it.
  return session === undefined ? "Calls this server." : "Calls this server, which ignores your token here.";
}

/** The reason why a request cannot be sent; empty if it can. */
function findFault(operation: Operation, draft: Draft): string {
  const missing = listMissing(operation, draft);
  if (missing.length > 0) return `Fill in ${missing.join(", ")}, which the path needs.`;
  if (draft.body !== undefined && parseJson(draft.body) === undefined)
    return 'The body is not JSON. Names and texts need double quotes, as in {"keyId": "key-1"}.';
  return "";
}
