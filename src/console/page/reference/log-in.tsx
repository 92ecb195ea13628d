/** Gets a token for the calls of this page, or takes one. The tab keeps it until it is closed, also for the console. */
import { useRef, useState } from "preact/hooks";
import { PasswordField, TextField } from "../parts/fields.tsx";
import { type Session, setSession } from "../session.ts";
import { type ApiDocument, isOpen } from "./document.ts";
import { readClaims } from "./token-claims.ts";

interface LogInProps {
  readonly api: ApiDocument;
  readonly session: Session | undefined;
}

export function LogIn({ api, session }: LogInProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const issue = api.operations.find((one) => one["x-grpc"].method === "pqc.TokenService/IssueToken");
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
        {issue !== undefined && <PasswordForm path={issue.path} onDone={close} />}
        <TokenForm onDone={close} />
        <button type="button" onClick={close}>
          Cancel
        </button>
      </dialog>
    </div>
  );
}

function PasswordForm({ path, onDone }: { readonly path: string; readonly onDone: () => void }) {
  const [username, setUsername] = useState("");
  const [password, setPassword] = useState("");
  const [fault, setFault] = useState("");
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setFault("");
    const answer = await requestToken(path, username, password);
    if (answer.token === undefined) {
      setFault(answer.message);
      return;
    }
    setSession({ username, token: answer.token });
    onDone();
  };
  return (
    <form class="log-in" onSubmit={(event) => void submit(event)}>
      <TextField label="User" value={username} onChange={setUsername} autocomplete="username" />
      <PasswordField label="Password" value={password} onChange={setPassword} />
      <button type="submit" class="primary">
        Get a token
      </button>
      {fault !== "" && <p role="alert">{fault}</p>}
    </form>
  );
}

/** Requests a token. @returns the token, or why there is none */
async function requestToken(
  path: string,
  username: string,
  password: string,
): Promise<{ readonly token?: string; readonly message: string }> {
  try {
    const response = await fetch(path, {
      method: "POST",
      cache: "no-store",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ username, ...(password !== "" && { password }) }),
    });
    const { token, message } = await response.json();
    if (typeof token === "string") return { token, message: "" };
    return { message: typeof message === "string" ? message : `The server answered ${response.status}.` };
  } catch {
    return { message: "The server could not be reached." };
  }
}

function TokenForm({ onDone }: { readonly onDone: () => void }) {
  const [text, setText] = useState("");
  const [fault, setFault] = useState("");
  const submit = (event: Event): void => {
    event.preventDefault();
    const token = text.trim().replace(/^Bearer\s+/i, "");
    if (!/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)) {
      setFault("This is not a token. A token has three parts of base64url, with dots between them.");
      return;
    }
    const { subject, expiresAt } = readClaims(token);
    if (expiresAt !== undefined && expiresAt <= new Date()) {
      setFault(`This token expired at ${expiresAt.toISOString()}. Get a new one.`);
      return;
    }
    setSession({ username: subject, token });
    onDone();
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
