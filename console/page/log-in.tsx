/** Lets the reader log in, on a server that wants a token. */
import { parseAddress } from "./address.ts";
import { LogInForm } from "./log-in-form.tsx";

export function LogIn() {
  const leave = (): void => {
    // Another page appears in the place of this one, except for the page that is the log-in itself.
    if (parseAddress(location.hash).path === "log-in") location.hash = "#/";
  };
  return (
    <>
      <header class="lead">
        <h1>Log in</h1>
        <p>
          Only users may call this server. After the log-in, this tab stores an ML-DSA-65 token until you
          close the tab, and sends it with each call.
        </p>
      </header>
      <LogInForm action="Log in" onDone={leave} />
      <Accounts />
    </>
  );
}

/** How to get an account, and how to use it without this page. */
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
        On your own machine, <code>npm start</code> runs a server that needs no account.
      </p>
      <h2>Without this page</h2>
      <p>The same account works in a terminal, and over REST and gRPC:</p>
      <pre class="code">{`qsp login NAME --url ${origin}`}</pre>
      <pre class="code">{`curl -s ${origin}/api/auth/token -H 'content-type: application/json' \\
  -d '{"username":"NAME","password":"PASSWORD"}'`}</pre>
      <p class="hint">
        The overview, the <a href="#/algorithms">algorithms</a> and the{" "}
        <a href="/reference">reference of all calls</a> need no account.
      </p>
    </section>
  );
}
