/** A key's grants: who else may use it. */
import { useEffect, useState } from "preact/hooks";
import type { Grant } from "#gen/kms/grant_pb.ts";
import { ActionButton } from "../../parts/action-button.tsx";
import { FailureNote } from "../../parts/failure-note.tsx";
import { type Column, RecordTable } from "../../parts/record-table.tsx";
import { useTask } from "../../task.ts";
import { formatMinute } from "../../time.ts";
import { GrantForm } from "./grant-form.tsx";
import { describeScope, loadGrants, revoke } from "./grants.ts";
import type { KeyDetails } from "./keys.ts";

export function KeyGrants({ handle, key, versions }: KeyDetails) {
  const [grants, setGrants] = useState<readonly Grant[]>([]);
  const [isLoaded, setLoaded] = useState(false);
  const loading = useTask();
  const revoking = useTask();
  const load = (): void =>
    void loading.run(
      (caller) => loadGrants(caller, handle),
      (found) => {
        setGrants(found);
        setLoaded(true);
      },
    );
  useEffect(load, [handle]);
  const columns: readonly Column<Grant>[] = [
    { title: "User", wraps: true, shows: ({ grantee }) => grantee },
    {
      title: "May",
      shows: ({ damaged, operations }) => (damaged ? "nothing: DAMAGED" : operations.join(", ")),
    },
    { title: "For", shows: (grant) => describeScope(grant, versions) },
    {
      title: "Until (UTC)",
      shows: ({ expiresAt, damaged }) => (expiresAt || damaged ? formatMinute(expiresAt) : "no end"),
    },
    {
      title: "Change",
      shows: ({ grantId, grantee }) => (
        <ActionButton
          task={revoking}
          onClick={() =>
            void revoking
              .run(
                (caller) => revoke(caller, grantId),
                () => {},
              )
              .then(load)
          }
        >
          Revoke<span class="unseen"> the grant to {grantee}</span>
        </ActionButton>
      ),
    },
  ];
  return (
    <>
      <h3>Grants</h3>
      {loading.failure && <FailureNote failure={loading.failure} />}
      {isLoaded && grants.length === 0 && <p>No other user may use this key.</p>}
      {grants.length > 0 && (
        <RecordTable label="Grants" columns={columns} rows={grants} identify={({ grantId }) => grantId} />
      )}
      {revoking.failure && <FailureNote failure={revoking.failure} />}
      <GrantForm handle={handle} keyId={key.keyId} usage={key.usage} onCreated={load} />
    </>
  );
}
