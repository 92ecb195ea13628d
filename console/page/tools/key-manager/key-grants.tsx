/** The grants of a key: who else may use it. */
import { useEffect, useState } from "preact/hooks";
import type { Grant } from "#gen/kms/grant_pb.ts";
import { ActionButton } from "../../parts/action-button.tsx";
import { FailureNote } from "../../parts/failure-note.tsx";
import { Scroller } from "../../parts/scroller.tsx";
import { type Task, useTask } from "../../task.ts";
import { formatMinute } from "../../time.ts";
import { GrantForm } from "./grant-form.tsx";
import { describeScope, loadGrants, revoke } from "./grants.ts";
import type { KeyDetails } from "./keys.ts";

export function KeyGrants(details: KeyDetails) {
  const { handle, key } = details;
  const [grants, setGrants] = useState<readonly Grant[]>();
  const loading = useTask();
  const revoking = useTask();
  const load = (): void => void loading.run((caller) => loadGrants(caller, handle), setGrants);
  useEffect(load, [handle]);
  return (
    <>
      <h3>Grants</h3>
      {loading.failure && <FailureNote failure={loading.failure} />}
      {grants?.length === 0 && <p>No other user may use this key.</p>}
      {grants !== undefined && grants.length > 0 && (
        <GrantTable
          grants={grants}
          versions={details.versions}
          task={revoking}
          onRevoke={({ grantId }) =>
            void revoking
              .run(
                (caller) => revoke(caller, grantId),
                () => {},
              )
              .then(load)
          }
        />
      )}
      {revoking.failure && <FailureNote failure={revoking.failure} />}
      <GrantForm handle={handle} keyId={key.keyId} usage={key.usage} onCreated={load} />
    </>
  );
}

interface GrantTableProps {
  readonly grants: readonly Grant[];
  readonly versions: KeyDetails["versions"];
  readonly task: Task;
  readonly onRevoke: (grant: Grant) => void;
}

function GrantTable({ grants, versions, task, onRevoke }: GrantTableProps) {
  return (
    <Scroller class="records" label="Grants">
      <table>
        <thead>
          <tr>
            <th scope="col">User</th>
            <th scope="col">May</th>
            <th scope="col">For</th>
            <th scope="col">Until (UTC)</th>
            <th scope="col">Change</th>
          </tr>
        </thead>
        <tbody>
          {grants.map((grant) => (
            <tr key={grant.grantId}>
              <th scope="row" class="wraps">
                {grant.grantee}
              </th>
              <td data-label="May">{grant.damaged ? "nothing: DAMAGED" : grant.operations.join(", ")}</td>
              <td data-label="For">{describeScope(grant, versions)}</td>
              <td data-label="Until (UTC)">
                {grant.expiresAt || grant.damaged ? formatMinute(grant.expiresAt) : "no end"}
              </td>
              <td data-label="Change">
                <ActionButton task={task} onClick={() => onRevoke(grant)}>
                  Revoke<span class="unseen"> the grant to {grant.grantee}</span>
                </ActionButton>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroller>
  );
}
