/** Gets a token for a user. The tab keeps it until it is closed. */
import { useState } from "preact/hooks";
import type { Failure } from "./failure.ts";
import { FailureNote } from "./parts/failure-note.tsx";
import { PasswordField, TextField } from "./parts/fields.tsx";
import { setSession } from "./session.ts";

interface LogInFormProps {
  /** The text of the button. */
  readonly action: string;
  readonly onDone: () => void;
}

export function LogInForm({ action, onDone }: LogInFormProps) {
  const [username, setUsername] = useState("");
  const [password, setPassword] = useState("");
  const [failure, setFailure] = useState<Failure>();
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setFailure(undefined);
    // The reference needs nothing else of what makes calls, so it is fetched when somebody logs in.
    const { makeCall } = await import("./calls.ts");
    const { TokenService } = await import("#gen/pqc/token_service_pb.ts");
    const made = await makeCall(TokenService.method.issueToken, { username, password }, { token: null });
    if (made.answer === undefined) return setFailure(made.failure);
    setSession({ username, token: made.answer.token });
    onDone();
  };
  return (
    <>
      <form class="log-in" onSubmit={(event) => void submit(event)}>
        <TextField label="User" value={username} onChange={setUsername} autocomplete="username" />
        <PasswordField label="Password" value={password} onChange={setPassword} />
        <button type="submit" class="primary">
          {action}
        </button>
      </form>
      {failure && <FailureNote failure={failure} />}
    </>
  );
}
