/** A key's grants: who else may use it. */
import { useEffect, useState } from "preact/hooks";
import type { Grant } from "#gen/kms/grant_pb.ts";
import { useForm } from "../../form.ts";
import { ActionButton } from "../../parts/action-button.tsx";
import { FailureNote } from "../../parts/failure-note.tsx";
import { Choice, ofTime, TextField } from "../../parts/fields.tsx";
import { TaskForm } from "../../parts/task-form.tsx";
import { useTask } from "../../task.ts";
import { formatMinute } from "../../time.ts";
import { createNewGrant, describeGrant, loadGrants, revoke } from "./grants.ts";
import { type KeyDetails, listOperations } from "./keys.ts";

export function KeyGrants(details: KeyDetails) {
  const { handle, key, versions } = details;
  const [grants, setGrants] = useState<readonly Grant[]>();
  const loading = useTask();
  const revoking = useTask();
  const load = (): void => void loading.run((caller) => loadGrants(caller, handle), setGrants);
  useEffect(load, [handle]);
  const end = ({ grantId }: Grant): void =>
    void revoking
      .run(
        (caller) => revoke(caller, grantId),
        () => {},
      )
      .then(load);
  return (
    <>
      <h3>Grants</h3>
      {loading.failure && <FailureNote failure={loading.failure} />}
      {grants?.length === 0 && <p>No other user may use this key.</p>}
      <ul class="rows" aria-label="Grants">
        {grants?.map((grant) => (
          <li key={grant.grantId}>
            <strong>{grant.grantee || grant.grantId}</strong> <span>{describeGrant(grant, versions)}</span>
            <span class="hint">{grant.expiresAt && `until ${formatMinute(grant.expiresAt)} UTC`}</span>
            <ActionButton task={revoking} onClick={() => end(grant)}>
              Revoke<span class="unseen"> the grant to {grant.grantee}</span>
            </ActionButton>
          </li>
        ))}
      </ul>
      {revoking.failure && <FailureNote failure={revoking.failure} />}
      {key.status !== "DESTROYED" && !key.damaged && <GrantForm {...details} onCreated={load} />}
    </>
  );
}

const allVersions = "All versions";

function GrantForm({ handle, key, onCreated }: KeyDetails & { readonly onCreated: () => void }) {
  const form = useForm({ grantee: "", scope: allVersions, end: "" });
  const { grantee, scope, end } = form.values;
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const task = useTask();
  const isWhole = scope === allVersions && handle !== key.keyId;
  // The primary version of a name can do everything that its usage allows.
  const possible = listOperations(isWhole ? { ...key, status: "ACTIVE" } : key);
  const operations = possible.filter((operation) => chosen.includes(operation));
  const finish = (): void => {
    form.clear();
    setChosen([]);
    onCreated();
  };
  const grant = { handle: isWhole ? handle : key.keyId, grantee: grantee.trim(), operations, end };
  return (
    <details class="create">
      <summary>Grant this key to another user</summary>
      <p class="text">The user may perform the chosen operations with the key and nothing else.</p>
      <TaskForm
        task={task}
        action="Grant"
        labels={{ grantee: "User", operations: "Operations", expiresAt: "End" }}
        onSubmit={() => void task.run((caller) => createNewGrant(caller, grant), finish)}
      >
        <div class="fields">
          <TextField label="User" {...form.bind("grantee")} />
          {handle !== key.keyId && (
            <Choice label="For" options={[allVersions, "This version"]} {...form.bind("scope")} />
          )}
          <TextField attributes={ofTime} label="End (UTC, optional)" {...form.bind("end")} />
        </div>
        <fieldset class="options">
          <legend>Operations</legend>
          {possible.map((operation) => (
            <label key={operation}>
              <input
                type="checkbox"
                checked={chosen.includes(operation)}
                onChange={({ currentTarget }) =>
                  setChosen((before) =>
                    currentTarget.checked
                      ? [...before, operation]
                      : before.filter((other) => other !== operation),
                  )
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
