/** Keys as a table: one row for all versions of a name. */
import type { KeyRecord } from "#gen/kms/key_pb.ts";
import { formatAddress } from "../../address.ts";
import { Badge, type Column, RecordTable } from "../../parts/record-table.tsx";
import { formatMinute } from "../../time.ts";
import {
  describeAlias,
  describeKind,
  describeRow,
  formatLabels,
  type KeyRow,
  nameKey,
  nameStatus,
} from "./keys.ts";

interface KeyTableProps {
  readonly rows: readonly KeyRow[];
  readonly chosenId: string;
}

export function KeyTable({ rows, chosenId }: KeyTableProps) {
  const isChosen = ({ versions }: KeyRow): boolean => versions.some(({ keyId }) => keyId === chosenId);
  const columns: readonly Column<KeyRow>[] = [
    {
      title: "Key",
      wraps: true,
      shows: (row) => (
        <>
          <KeyLink keyId={row.key.keyId} isChosen={isChosen(row)} text={nameKey(row.key)} />
          <span class="hint">{describeRow(row)}</span>
          {row.key.owner && <span class="hint">owner: {row.key.owner}</span>}
          {row.key.name !== undefined && <span class="hint">{describeAlias(row.key)}</span>}
        </>
      ),
    },
    {
      title: "Algorithm",
      shows: ({ key }) => (
        <>
          {key.algorithm} {!key.damaged && <span class="hint">{describeKind(key)}</span>}
        </>
      ),
    },
    { title: "Status", shows: ({ key }) => <Badge state={nameStatus(key)} /> },
    { title: "Created (UTC)", isMinor: true, shows: ({ key }) => formatMinute(key.createdAt) },
    { title: "Next change (UTC)", isMinor: true, shows: ({ key }) => showNextChange(key) },
    { title: "Labels", isMinor: true, wraps: true, shows: ({ key }) => formatLabels(key.labels) },
  ];
  return (
    <RecordTable
      label="Keys"
      columns={columns}
      rows={rows}
      identify={({ key }) => key.keyId}
      isChosen={isChosen}
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
      {formatMinute(time)} <span class="hint">{destroyAt ? "destruction" : "rotation"}</span>
    </>
  );
}
