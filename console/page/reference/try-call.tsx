/** The form that makes the call on this server, and the answer. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { CodeBlock } from "../parts/code-block.tsx";
import { TextArea, TextField } from "../parts/fields.tsx";
import { endRefusedSession, type Session, useSession } from "../session.ts";
import { formatBytes, formatMs } from "../values.ts";
import { needsToken, type Operation } from "./document.ts";
import { buildHttp, type Draft, findFault } from "./request.ts";
import { type Sent, send } from "./send.ts";

interface TryCallProps {
  readonly operation: Operation;
  readonly draft: Draft;
  readonly onDraft: (draft: Draft) => void;
  /** Content above the form. */
  readonly children?: ComponentChildren;
}

export function TryCall({ operation, draft, onDraft, children }: TryCallProps) {
  const session = useSession();
  const [sent, setSent] = useState<Sent>();
  const [fault, setFault] = useState("");
  const [isBusy, setBusy] = useState(false);
  const abort = useRef<AbortController>(undefined);
  // A stream ends when the reader leaves the call's page.
  useEffect(() => () => abort.current?.abort(), []);

  const submit = async (): Promise<void> => {
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
        if (part.status === 401) endRefusedSession(session?.token, readReason(part.text));
      });
    } catch (thrown) {
      if (!mine.signal.aborted)
        setFault(thrown instanceof TypeError ? "The server could not be reached." : String(thrown));
    }
    if (abort.current === mine) setBusy(false);
  };
  const stop = (): void => {
    abort.current?.abort();
    setBusy(false);
  };

  return (
    <section class="try" aria-label="Try the call">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <h2>Try it</h2>
        {needsToken(operation) && session === undefined && (
          <p class="hint">This call requires a token. Log in first.</p>
        )}
        {children}
        <Inputs {...{ operation, draft, onDraft }} />
        <p class="act">
          <button type="submit" class="primary" aria-disabled={isBusy}>
            Send
          </button>
          {isBusy && (
            <button type="button" onClick={stop}>
              Stop
            </button>
          )}
          <span class="hint">{sayCaller(operation, session)}</span>
        </p>
        {fault !== "" && <p role="alert">{fault}</p>}
      </form>
      {sent !== undefined && (
        <>
          <p role="status" class="sent" data-ok={sent.status < 400}>
            <strong>
              {sent.status} {sent.statusText}
            </strong>{" "}
            <span class="hint">
              {formatMs(sent.durationMs)}, {formatBytes(sent.byteCount)}
              {sent.state === "cut" && ", the rest is not shown"}
              {sent.state === "open" && isBusy && ", waiting for more"}
            </span>
          </p>
          <CodeBlock title="Server's answer" text={sent.text} />
        </>
      )}
    </section>
  );
}

function Inputs({ operation, draft, onDraft }: Pick<TryCallProps, "operation" | "draft" | "onDraft">) {
  const set = (name: string, value: string): void =>
    onDraft({ ...draft, parameters: { ...draft.parameters, [name]: value } });
  return (
    <div class="fields">
      {operation.parameters.map(({ name, in: place, required }) => (
        <TextField
          key={name}
          label={`${name}, in the ${place}${required === true ? ", required" : ""}`}
          value={draft.parameters[name] ?? ""}
          onChange={(value) => set(name, value)}
        />
      ))}
      {draft.file !== undefined && (
        <label class="field">
          Body, a file
          <input
            type="file"
            onChange={({ currentTarget: { files } }) => onDraft({ ...draft, file: files?.[0] ?? draft.file })}
          />
        </label>
      )}
      {draft.body !== undefined && (
        <TextArea
          label="Body, JSON"
          rows={Math.min(14, draft.body.split("\n").length + 1)}
          value={draft.body}
          onChange={(body) => onDraft({ ...draft, body })}
        />
      )}
    </div>
  );
}

/** The reason of a failed call. */
function readReason(text: string): string {
  return /"reason":\s*"(\w+)"/.exec(text)?.[1] ?? "";
}

function sayCaller(operation: Operation, session: Session | undefined): string {
  if (needsToken(operation))
    return `Calls this server${session === undefined ? "" : ` as ${session.username}`}.`;
  // Where no token is required, the server ignores it.
  return session === undefined ? "Calls this server." : "Calls this server, which ignores your token here.";
}
