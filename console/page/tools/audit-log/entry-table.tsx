/** Audit log entries as a table. */
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import { formatAddress } from "../../address.ts";
import { Badge, type Column, RecordTable, When } from "../../parts/record-table.tsx";
import { formatSecond } from "../../time.ts";
import { formatNumber } from "../../values.ts";
import { shortenId } from "../key-id.ts";
import { splitDetails } from "./entries.ts";

const columns: readonly Column<AuditEntry>[] = [
  { title: "Entry", shows: ({ sequence }) => formatNumber(sequence) },
  { title: "Time (UTC)", shows: ({ timestamp }) => <When time={formatSecond(timestamp)} /> },
  { title: "Operation", shows: ({ operation }) => operation },
  { title: "Outcome", shows: ({ outcome }) => <Badge state={outcome} /> },
  { title: "Key", wraps: true, shows: ({ keyId }) => showKey(keyId) },
  {
    title: "User, address",
    wraps: true,
    shows: ({ user, clientAddress }) => (
      <>
        {user} <span class="hint">{clientAddress || "the server itself"}</span>
      </>
    ),
  },
  {
    title: "Request ID, details",
    wraps: true,
    shows: ({ requestId, details }) => (
      <>
        {requestId !== "" && <code>{requestId}</code>}
        {splitDetails(details).map((detail) => (
          <span key={detail} class="hint">
            {detail}
          </span>
        ))}
      </>
    ),
  },
];

export function EntryTable({ entries }: { readonly entries: readonly AuditEntry[] }) {
  return (
    <RecordTable label="Entries" columns={columns} rows={entries} identify={({ sequence }) => sequence} />
  );
}

function showKey(keyId: string) {
  if (!keyId.startsWith("key-")) return keyId;
  return (
    <a href={formatAddress("keys/manage", { key: keyId })} title={keyId} class="short">
      {shortenId(keyId)}
    </a>
  );
}
