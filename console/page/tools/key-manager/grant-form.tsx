/** Creates a grant. */
import { useState } from "preact/hooks";
import { useForm } from "../../form.ts";
import { Choice, ofTime, TextField } from "../../parts/fields.tsx";
import { TaskForm } from "../../parts/task-form.tsx";
import { useTask } from "../../task.ts";
import { createNewGrant } from "./grants.ts";
import { findKind } from "./keys.ts";

interface GrantFormProps {
  /** Means all versions of the name, or the key itself if it has no name. */
  readonly handle: string;
  readonly keyId: string;
  readonly usage: string;
  readonly onCreated: () => void;
}

const allVersions = "All versions";

export function GrantForm({ handle, keyId, usage, onCreated }: GrantFormProps) {
  const form = useForm({ grantee: "", scope: allVersions, end: "" });
  const { grantee, scope, end } = form.values;
  const [operations, setOperations] = useState<readonly string[]>([]);
  const task = useTask();
  const grant = { handle: scope === allVersions ? handle : keyId, grantee: grantee.trim(), operations, end };
  return (
    <details class="create">
      <summary>Grant this key to another user</summary>
      <p class="text">The user may perform the chosen operations with the key and nothing else.</p>
      <TaskForm
        task={task}
        action="Grant"
        onSubmit={() => void task.run((caller) => createNewGrant(caller, grant), onCreated)}
      >
        <div class="fields">
          <TextField label="User" {...form.bind("grantee")} />
          {handle !== keyId && (
            <Choice label="For" options={[allVersions, "This version"]} {...form.bind("scope")} />
          )}
          <TextField attributes={ofTime} label="End (UTC, optional)" {...form.bind("end")} />
        </div>
        <fieldset class="options">
          <legend>Operations</legend>
          {findKind(usage).operations.map((operation) => (
            <label key={operation}>
              <input
                type="checkbox"
                checked={operations.includes(operation)}
                onChange={({ currentTarget }) =>
                  setOperations((before) => [
                    ...before.filter((other) => other !== operation),
                    ...(currentTarget.checked ? [operation] : []),
                  ])
                }
              />{" "}
              {operation}
            </label>
          ))}
        </fieldset>
      </TaskForm>
    </details>
  );
}
