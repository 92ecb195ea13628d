/** All versions of a name. */
import { Badge, RecordTable } from "../../parts/record-table.tsx";
import { formatMinute } from "../../time.ts";
import { KeyLink } from "./key-table.tsx";
import { describeVersion, type KeyDetails, nameStatus } from "./keys.ts";

export function KeyVersions({ key: { keyId: chosenId, name }, versions }: KeyDetails) {
  if (versions.length === 0) return null;
  return (
    <>
      <h3>Versions of {name}</h3>
      <RecordTable
        label="Versions"
        columns={[
          {
            title: "Version",
            shows: (key) => (
              <KeyLink keyId={key.keyId} isChosen={key.keyId === chosenId} text={describeVersion(key)} />
            ),
          },
          { title: "Status", shows: (key) => <Badge state={nameStatus(key)} /> },
          { title: "Created (UTC)", shows: ({ createdAt }) => formatMinute(createdAt) },
          { title: "ID", shows: ({ keyId }) => <code>{keyId}</code> },
        ]}
        rows={versions}
        identify={({ keyId }) => keyId}
        isChosen={({ keyId }) => keyId === chosenId}
      />
    </>
  );
}
