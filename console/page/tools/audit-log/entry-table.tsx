/** Audit log entries as a table. */
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import { formatAddress } from "../../address.ts";
import { Badge, type Column, RecordTable } from "../../parts/record-table.tsx";
import { formatSecond } from "../../time.ts";
import { useAddress } from "../../use-address.ts";
import { formatNumber, shortenId } from "../../values.ts";

interface EntryTableProps {
  readonly entries: readonly AuditEntry[];
  /** The chosen entry's number. */
  readonly chosen: string;
}

export function EntryTable({ entries, chosen }: EntryTableProps) {
  const key = useAddress().query.get("key") ?? "";
  const isChosen = ({ sequence }: AuditEntry): boolean => String(sequence) === chosen;
  const columns: readonly Column<AuditEntry>[] = [
    {
      title: "Entry",
      shows: (entry) => (
        <a
          href={formatAddress("keys/audit", { key, entry: String(entry.sequence) })}
          aria-current={isChosen(entry) ? "true" : undefined}
        >
          {formatNumber(entry.sequence)}
        </a>
      ),
    },
    { title: "Time (UTC)", wraps: true, shows: ({ timestamp }) => formatSecond(timestamp) },
    { title: "Operation", shows: ({ operation }) => operation },
    { title: "Outcome", shows: ({ outcome, damaged }) => <Badge state={damaged ? "DAMAGED" : outcome} /> },
    { title: "Key", wraps: true, shows: ({ keyId }) => linkKey(keyId) },
    { title: "Caller", wraps: true, isMinor: true, shows: ({ user }) => user },
    {
      title: "Details",
      wraps: true,
      isMinor: true,
      shows: ({ details }) => <span class="hint">{details}</span>,
    },
  ];
  return (
    <RecordTable
      label="Entries"
      columns={columns}
      rows={entries}
      identify={({ sequence }) => sequence}
      isChosen={isChosen}
    />
  );
}

/** Links a text that is a key ID. */
export function linkKey(text: string) {
  if (!text.startsWith("key-")) return text;
  return (
    <a href={formatAddress("keys/manage", { key: text })} title={text} class="short">
      {shortenId(text)}
    </a>
  );
}
