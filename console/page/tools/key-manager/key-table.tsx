/** Keys as a table. */
import type { KeyRecord } from "#gen/kms/key_pb.ts";
import { formatAddress } from "../../address.ts";
import { CopyButton } from "../../parts/copy-button.tsx";
import { Badge, type Column, RecordTable, When } from "../../parts/record-table.tsx";
import { formatMinute } from "../../time.ts";
import { shortenId } from "../key-id.ts";
import { describeAlias, describeKind, describeVersion, formatLabels, nameKey, nameStatus } from "./keys.ts";

interface KeyTableProps {
  readonly keys: readonly KeyRecord[];
  readonly chosenId: string;
}

export function KeyTable({ keys, chosenId }: KeyTableProps) {
  const columns: readonly Column<KeyRecord>[] = [
    {
      title: "Key",
      wraps: true,
      shows: (key) => (
        <>
          <KeyLink keyId={key.keyId} isChosen={key.keyId === chosenId} text={nameKey(key)} />
          <span class="hint">{describeVersion(key)}</span>
          {key.name !== undefined && <span class="hint">{describeAlias(key.alias)}</span>}
        </>
      ),
    },
    {
      title: "ID",
      shows: (key) => (
        <>
          <code title={key.keyId}>{shortenId(key.keyId)}</code>
          <CopyButton text={key.keyId} what={`ID of ${nameKey(key)}`} />
        </>
      ),
    },
    {
      title: "Algorithm",
      shows: (key) => (
        <>
          {key.algorithm} {!key.damaged && <span class="hint">{describeKind(key)}</span>}
        </>
      ),
    },
    { title: "Status", shows: (key) => <Badge state={nameStatus(key)} /> },
    { title: "Created (UTC)", shows: ({ createdAt }) => <When time={formatMinute(createdAt)} /> },
    { title: "Next change (UTC)", shows: showNextChange },
    { title: "Labels", wraps: true, shows: ({ labels }) => <Labels labels={labels} /> },
  ];
  return (
    <RecordTable
      label="Keys"
      columns={columns}
      rows={keys}
      identify={({ keyId }) => keyId}
      isChosen={({ keyId }) => keyId === chosenId}
    />
  );
}

interface KeyLinkProps {
  readonly keyId: string;
  readonly isChosen?: boolean;
  readonly text: string;
}

export function KeyLink({ keyId, isChosen = false, text }: KeyLinkProps) {
  return (
    <a href={formatAddress("keys/manage", { key: keyId })} aria-current={isChosen ? "true" : undefined}>
      {text}
    </a>
  );
}

function showNextChange({ destroyAt, nextRotationAt }: KeyRecord) {
  const time = destroyAt ?? nextRotationAt;
  if (time === undefined) return "none";
  return (
    <>
      <When time={formatMinute(time)} /> <span class="hint">{destroyAt ? "destruction" : "rotation"}</span>
    </>
  );
}

export function Labels({ labels }: Pick<KeyRecord, "labels">) {
  const shown = formatLabels(labels);
  if (shown.length === 0) return <>none</>;
  return (
    <ul class="labels">
      {shown.map((label) => (
        <li key={label}>{label}</li>
      ))}
    </ul>
  );
}
