/** Keys as a table; on a phone, as one card per key. */
import type { KeyRecord } from "#gen/kms/key_pb.ts";
import { formatAddress } from "../../address.ts";
import { CopyButton } from "../../parts/copy-button.tsx";
import { Scroller } from "../../parts/scroller.tsx";
import { When } from "../../parts/when.tsx";
import { formatMinute } from "../../time.ts";
import { shortenId } from "../key-id.ts";
import { describeAlias, describeVersion, formatLabels, nameKey } from "./keys.ts";
import { StatusBadge } from "./status-badge.tsx";

interface KeyTableProps {
  readonly keys: readonly KeyRecord[];
  readonly chosenId: string;
}

export function KeyTable({ keys, chosenId }: KeyTableProps) {
  return (
    <Scroller class="records" label="Keys">
      <table>
        <thead>
          <tr>
            <th scope="col">Key</th>
            <th scope="col">ID</th>
            <th scope="col">Algorithm</th>
            <th scope="col">Status</th>
            <th scope="col">Created (UTC)</th>
            <th scope="col">Next change (UTC)</th>
            <th scope="col">Labels</th>
          </tr>
        </thead>
        <tbody>
          {keys.map((key) => (
            <KeyRow key={key.keyId} record={key} isChosen={key.keyId === chosenId} />
          ))}
        </tbody>
      </table>
    </Scroller>
  );
}

function KeyRow({ record, isChosen }: { readonly record: KeyRecord; readonly isChosen: boolean }) {
  const { keyId, alias, name, algorithm, usage, origin, createdAt, labels, damaged } = record;
  return (
    <tr data-chosen={isChosen}>
      <th scope="row" class="wraps">
        <a href={formatAddress("keys/manage", { key: keyId })} aria-current={isChosen ? "true" : undefined}>
          {nameKey(record)}
        </a>
        <span class="hint">{describeVersion(record)}</span>
        {name !== undefined && <span class="hint">{describeAlias(alias)}</span>}
      </th>
      <td data-label="ID">
        <code title={keyId}>{shortenId(keyId)}</code>
        <CopyButton text={keyId} what={`ID of ${nameKey(record)}`} />
      </td>
      <td data-label="Algorithm">
        {algorithm}{" "}
        {!damaged && (
          <span class="hint">
            {usage}, {origin}
          </span>
        )}
      </td>
      <td data-label="Status">
        <StatusBadge {...record} />
      </td>
      <td data-label="Created (UTC)">
        <When time={createdAt} format={formatMinute} />
      </td>
      <td data-label="Next change (UTC)">
        <NextChange {...record} />
      </td>
      <td data-label="Labels" class="wraps">
        <Labels labels={labels} />
      </td>
    </tr>
  );
}

function NextChange({ destroyAt, nextRotationAt }: Pick<KeyRecord, "destroyAt" | "nextRotationAt">) {
  if (destroyAt)
    return (
      <>
        <When time={destroyAt} format={formatMinute} /> <span class="hint">destruction</span>
      </>
    );
  if (nextRotationAt)
    return (
      <>
        <When time={nextRotationAt} format={formatMinute} /> <span class="hint">rotation</span>
      </>
    );
  return <>none</>;
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
