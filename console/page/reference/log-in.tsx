/** Gets a token for the calls of this page, or takes one. The tab keeps it until it is closed, also for the console. */
import { useRef, useState } from "preact/hooks";
import { readToken } from "../jwt.ts";
import { LogInForm } from "../log-in-form.tsx";
import { type Session, setSession } from "../session.ts";
import { type ApiDocument, isOpen } from "./document.ts";

interface LogInProps {
  readonly api: ApiDocument;
  readonly session: Session | undefined;
}

export function LogIn({ api, session }: LogInProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const canIssue = api.operations.some((one) => one["x-grpc"].method === "pqc.TokenService/IssueToken");
  if (session !== undefined)
    return (
      <p class="ref-session">
        <span>{session.username}</span>
        <button type="button" onClick={() => setSession(undefined)}>
          Log out
        </button>
      </p>
    );
  const close = (): void => dialog.current?.close();
  return (
    <div class="ref-session">
      <button type="button" onClick={() => dialog.current?.showModal()}>
        Log in
      </button>
      <dialog ref={dialog} aria-label="Log in" class="ref-dialog">
        <h2 class="ref-title">Log in</h2>
        {isOpen(api) && (
          <p class="hint">
            This server is open: calls count as system, and tokens are ignored, except by calls that always
            need one.
          </p>
        )}
        {canIssue && <LogInForm action="Get a token" onDone={close} />}
        <TokenForm onDone={close} />
        <button type="button" onClick={close}>
          Cancel
        </button>
      </dialog>
    </div>
  );
}

function TokenForm({ onDone }: { readonly onDone: () => void }) {
  const [text, setText] = useState("");
  const [fault, setFault] = useState("");
  const submit = (event: Event): void => {
    event.preventDefault();
    const token = text.trim().replace(/^Bearer\s+/i, "");
    const { sub, exp } = readClaims(token);
    if (sub === undefined) {
      setFault("This is not a token. A token has three parts of base64url, with dots between them.");
    } else if (exp * 1000 <= Date.now()) {
      setFault(`This token expired at ${new Date(exp * 1000).toISOString()}. Get a new one.`);
    } else {
      setSession({ username: sub, token });
      onDone();
    }
  };
  return (
    <form class="log-in" onSubmit={submit}>
      <label class="ref-input">
        <span>Or paste a token</span>
        {/* Hidden like a password, but nothing for the browser to remember. */}
        <input
          type="password"
          autocomplete="off"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      <button type="submit">Use the token</button>
      {fault !== "" && <p role="alert">{fault}</p>}
    </form>
  );
}

/** Reads the claims of a token, which the server judges. `sub` is undefined for a text that is no token. */
function readClaims(token: string): { readonly sub?: string; readonly exp: number } {
  try {
    const { sub, exp } = readToken(token).payload;
    const subject = typeof sub === "string" && sub !== "" ? sub.slice(0, 60) : "a token";
    return { sub: subject, exp: typeof exp === "number" ? exp : Number.POSITIVE_INFINITY };
  } catch {
    return { exp: Number.POSITIVE_INFINITY };
  }
}
