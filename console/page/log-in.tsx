/**
 * Lets the reader log in or paste a token. The tab keeps it until it is closed, and shares it with the
 * reference.
 */

import { useState } from "preact/hooks";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { withoutToken } from "./caller.ts";
import { Failure } from "./failure.ts";
import { useForm } from "./form.ts";
import { openServer } from "./frame.tsx";
import { readToken } from "./jwt.ts";
import { ofPassword, TextField } from "./parts/fields.tsx";
import { Lead } from "./parts/lead.tsx";
import { TaskForm } from "./parts/task-form.tsx";
import { setSession } from "./session.ts";
import { settings } from "./settings.ts";
import { useTask } from "./task.ts";
import { useAddress } from "./use-address.ts";

export function LogIn() {
  const { path, query } = useAddress();
  const call = query.get("call");
  const leave = (): void => {
    // After the log-in the requested page replaces this one, unless this is the log-in page itself.
    if (call !== null) location.replace(`/reference#/${call}`);
    else if (path === "log-in") location.replace("#/");
  };
  return (
    <>
      <Lead title="Log in">
        {settings.wantsToken ? "Only users may call this server." : openServer} After the log-in, this tab
        stores an ML-DSA-65 token until you close the tab, and sends it with each call.
      </Lead>
      <PasswordForm onDone={leave} />
      <TokenForm onDone={leave} />
      <Accounts />
    </>
  );
}

interface FormProps {
  readonly onDone: () => void;
}

function PasswordForm({ onDone }: FormProps) {
  const { values, bind } = useForm({ username: "", password: "" });
  const task = useTask();
  const submit = (): Promise<void> =>
    task.run(
      ({ call }) => call(TokenService.method.issueToken, values, withoutToken),
      ({ token }) => {
        setSession({ username: values.username, token });
        onDone();
      },
    );
  return (
    <TaskForm task={task} action="Log in" onSubmit={() => void submit()}>
      <div class="fields">
        <TextField
          label="User"
          attributes={{ type: "text", autocomplete: "username" }}
          {...bind("username")}
        />
        <TextField label="Password" attributes={ofPassword} {...bind("password")} />
      </div>
    </TaskForm>
  );
}

function TokenForm({ onDone }: FormProps) {
  const [text, setText] = useState("");
  const task = useTask();
  const submit = (): Promise<void> =>
    task.run(
      async ({ call }) => {
        const session = readSession(text.trim().replace(/^Bearer\s+/i, ""));
        const { token } = session;
        const { valid, reason } = await call(TokenService.method.verifyToken, { token }, withoutToken);
        if (!valid)
          throw new Failure(reason ?? "TOKEN_REFUSED", "BROWSER", "The server does not accept this token.");
        return session;
      },
      (session) => {
        setSession(session);
        onDone();
      },
    );
  return (
    <details class="create">
      <summary>Use an existing token</summary>
      <TaskForm task={task} action="Use the token" onSubmit={() => void submit()}>
        <div class="fields">
          <TextField label="Token" attributes={{ type: "password" }} value={text} onChange={setText} />
        </div>
      </TaskForm>
    </details>
  );
}

/**
 * Reads the user from a token, which the server has yet to verify.
 *
 * @throws Failure for a text that is not a token
 */
function readSession(token: string) {
  try {
    const { sub } = readToken(token).payload;
    return { token, username: typeof sub === "string" && sub !== "" ? sub.slice(0, 60) : "a token" };
  } catch {
    throw new Failure("TOKEN_MALFORMED", "BROWSER", "A token has three base64url parts, separated by dots.");
  }
}

/** How to get an account, and how to use it outside the browser. */
function Accounts() {
  const { origin } = location;
  return (
    <section class="text" aria-labelledby="accounts">
      <h2 id="accounts">No account yet?</h2>
      <p>
        An operator adds users on the machine of the server, in its folder. The command asks for a password;
        the role is <code>user</code>, <code>auditor</code> (reads all audit entries and the metrics) or{" "}
        <code>admin</code>.
      </p>
      <pre class="code">qsp user add NAME user</pre>
      <p>
        In a clone of the repository, the command is <code>./qsp</code>.
      </p>
      <p>
        On your own machine, <code>npm start</code> runs a server that needs no account.
      </p>
      <h2>Without this page</h2>
      <p>The same account works in a terminal, and over REST and gRPC:</p>
      <pre class="code">{`qsp login NAME --url ${origin}`}</pre>
      <pre class="code">{`curl -s ${origin}/api/auth/token -H 'content-type: application/json' \\
  -d '{"username":"NAME","password":"PASSWORD"}'`}</pre>
      <p class="hint">
        The home page, the <a href="#/algorithms">algorithms</a>, the <a href="#/handshake">handshake</a>, the{" "}
        <a href="#/tokens/inspect">token inspector</a> and the <a href="/reference">API reference</a> need no
        account.
      </p>
    </section>
  );
}
