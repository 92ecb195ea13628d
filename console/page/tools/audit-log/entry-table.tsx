/** Entries of the audit log as a table; on a phone, as one card per entry. */
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import { formatAddress } from "../../address.ts";
import { Scroller } from "../../parts/scroller.tsx";
import { When } from "../../parts/when.tsx";
import { formatSecond } from "../../time.ts";
import { formatNumber } from "../../values.ts";
import { shortenId } from "../key-id.ts";
import { splitDetails } from "./entries.ts";

export function EntryTable({ entries }: { readonly entries: readonly AuditEntry[] }) {
  return (
    <Scroller class="records" label="Entries">
      <table>
        <thead>
          <tr>
            <th scope="col">Entry</th>
            <th scope="col">Time (UTC)</th>
            <th scope="col">Operation</th>
            <th scope="col">Outcome</th>
            <th scope="col">Key</th>
            <th scope="col">User, address</th>
            <th scope="col">Request ID, details</th>
          </tr>
        </thead>
        <tbody>
          {entries.map((entry) => (
            <EntryRow key={entry.sequence} entry={entry} />
          ))}
        </tbody>
      </table>
    </Scroller>
  );
}

function EntryRow({ entry }: { readonly entry: AuditEntry }) {
  const { sequence, timestamp, operation, outcome, keyId, user, clientAddress, requestId, details } = entry;
  return (
    <tr>
      <th scope="row">{formatNumber(sequence)}</th>
      <td data-label="Time (UTC)">
        <When time={timestamp} format={formatSecond} />
      </td>
      <td data-label="Operation">{operation}</td>
      <td data-label="Outcome">
        <span class="badge" data-status={outcome}>
          {outcome}
        </span>
      </td>
      <td data-label="Key" class="wraps">
        {keyId.startsWith("key-") ? (
          <a href={formatAddress("keys/manage", { key: keyId })} title={keyId} class="short">
            {shortenId(keyId)}
          </a>
        ) : (
          keyId
        )}
      </td>
      <td data-label="User, address" class="wraps">
        {user} <span class="hint">{clientAddress || "the server itself"}</span>
      </td>
      <td data-label="Request ID, details" class="wraps details">
        {requestId !== "" && <code>{requestId}</code>}
        {splitDetails(details).map((detail) => (
          <span key={detail} class="hint">
            {detail}
          </span>
        ))}
      </td>
    </tr>
  );
}
