/** All records of the reader in one table, newest first. */

import { useEffect, useState } from "preact/hooks";
import { formatAddress } from "../../address.ts";
import { ActionButton } from "../../parts/action-button.tsx";
import { CopyButton } from "../../parts/copy-button.tsx";
import { FailureNote } from "../../parts/failure-note.tsx";
import { Lead } from "../../parts/lead.tsx";
import { Badge, type Column, RecordTable } from "../../parts/record-table.tsx";
import { settings } from "../../settings.ts";
import { useTask } from "../../task.ts";
import { formatNumber, shortenId } from "../../values.ts";
import { type FoundRecord, type Inventory, listedKinds, loadInventory } from "./records.ts";

const columns: readonly Column<FoundRecord>[] = [
  { title: "Name", wraps: true, shows: showName },
  { title: "Kind", shows: ({ kind }) => kind },
  {
    title: "ID",
    isMinor: true,
    shows: ({ id, name }) => (
      <>
        <code title={id}>{shortenId(id)}</code>{" "}
        <CopyButton text={id} what={`ID of ${name || shortenId(id)}`} />
      </>
    ),
  },
  { title: "State", shows: ({ state }) => <Badge state={state} /> },
  { title: "Created (UTC)", isMinor: true, shows: ({ createdAt }) => formatTime(createdAt) },
];

export function Page() {
  const [kind, setKind] = useState("");
  const [inventory, setInventory] = useState<Inventory>({});
  const loading = useTask();
  const load = (): void => void loading.run((caller) => loadInventory(caller, kind, inventory), setInventory);
  useEffect(load, []);

  const lists = Object.entries(inventory).filter(([name]) => kind === "" || name === kind);
  const rows = lists
    .flatMap(([, { items }]) => items)
    .toSorted((one, other) => other.createdAt.localeCompare(one.createdAt));
  const chosen = listedKinds.find((listed) => listed.kind === kind);
  return (
    <div class="tool">
      <Lead title="Inventory">
        {settings.wantsToken
          ? "Your records on the server. Administrators see the records of all users."
          : "The records on the server. It has no users, so it lists what anyone has created."}
      </Lead>
      <fieldset class="options" aria-label="Kind">
        {listKinds(inventory).map(({ value, title, size }) => (
          <button key={value} type="button" aria-pressed={kind === value} onClick={() => setKind(value)}>
            {title} <span class="size">{formatNumber(size)}</span>
          </button>
        ))}
      </fieldset>
      {lists.map(([name, { failure }]) => failure && <FailureNote key={name} failure={failure} />)}
      {rows.length > 0 && (
        <RecordTable
          label="Records"
          columns={columns}
          rows={rows}
          identify={({ kind: own, id }) => `${own} ${id}`}
        />
      )}
      {!loading.isRunning && rows.length === 0 && (
        <p class="note">
          None yet. You can create:{" "}
          {(chosen ? [chosen] : listedKinds).map(({ path, title }, at) => (
            <>
              {at > 0 && ", "}
              <a href={`#/${path}`}>{title}</a>
            </>
          ))}
        </p>
      )}
      {lists.some(([, { nextPageToken }]) => nextPageToken !== "") && (
        <ActionButton task={loading} onClick={load}>
          Load more
        </ActionButton>
      )}
    </div>
  );
}

/** The choices of the filter, with the number of records. */
function listKinds(inventory: Inventory) {
  const choices = listedKinds.map(({ kind, title }) => ({
    value: kind,
    title,
    size: inventory[kind]?.totalSize ?? 0,
  }));
  return [{ value: "", title: "All", size: choices.reduce((sum, { size }) => sum + size, 0) }, ...choices];
}

/** Links a key to the key manager, and everything else to its story. */
function showName({ kind, id, name }: FoundRecord) {
  const path = listedKinds.find((listed) => listed.kind === kind)?.path ?? "";
  return <a href={formatAddress(path, kind === "key" ? { key: id } : {})}>{name || shortenId(id)}</a>;
}

/** "2026-11-23 13:58", or "–" if the server (RFC 3339) sent none. */
function formatTime(time: string): string {
  return time === "" ? "–" : time.slice(0, 16).replace("T", " ");
}
