/** All records of the reader in one table: those on the server, and those that this tab has created. */
import { useEffect, useState } from "preact/hooks";
import { formatAddress, parseAddress } from "../../address.ts";
import { type CreatedAt, type CreatedRecord, noteStates, useCreatedRecords } from "../../created-records.ts";
import { ActionButton } from "../../parts/action-button.tsx";
import { CopyButton } from "../../parts/copy-button.tsx";
import { FailureNote } from "../../parts/failure-note.tsx";
import { Badge, type Column, RecordTable } from "../../parts/record-table.tsx";
import type { FoundRecord } from "../../record-kinds.ts";
import { settings } from "../../settings.ts";
import { useTask } from "../../task.ts";
import { formatNumber } from "../../values.ts";
import { shortenId } from "../key-id.ts";
import { type Inventory, listedKinds, loadInventory } from "./load-records.ts";

type Row = FoundRecord & Partial<Pick<CreatedRecord, "at">>;

const columns: readonly Column<Row>[] = [
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
  {
    title: "Created (UTC)",
    isMinor: true,
    wraps: true,
    shows: ({ at, createdAt }) => (
      <>
        {formatTime(createdAt)} {at && <a href={at.href}>{nameOrigin(at)}</a>}
      </>
    ),
  },
];

export function Page() {
  const [kind, setKind] = useState("");
  const [inventory, setInventory] = useState<Inventory>({});
  const created = useCreatedRecords();
  const loading = useTask();
  const load = (): void =>
    void loading.run(
      (caller) => loadInventory(caller, kind, inventory),
      (next) => {
        setInventory(next);
        noteStates(Object.values(next).flatMap(({ items }) => items));
      },
    );
  useEffect(load, []);

  const lists = Object.entries(inventory).filter(([name]) => kind === "" || name === kind);
  const rows = mergeRecords(
    lists.flatMap(([, { items }]) => items),
    created.filter((record) => kind === "" || record.kind === kind),
  );
  const chosen = listedKinds.find((listed) => listed.kind === kind);
  return (
    <div class="tool">
      <header class="lead">
        <h1 tabIndex={-1}>Inventory</h1>
        <p>
          {settings.wantsToken
            ? "Your records on the server. Administrators see the records of all users."
            : "The records on the server. It has no users, so it lists what anyone has created."}{" "}
          Records that you create in this tab come first.
        </p>
      </header>
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
          identify={({ kind: own, id, createdAt }) => `${own} ${id} ${createdAt}`}
        />
      )}
      {!loading.isRunning && rows.length === 0 && (
        <p class="note">
          None yet. You can create:{" "}
          {(chosen ? [chosen] : listedKinds).map(({ list }, at) => (
            <>
              {at > 0 && ", "}
              <a href={`#/${list.path}`}>{list.title}</a>
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

/** Records with those that this tab has created first, newest first. */
function mergeRecords(listed: readonly FoundRecord[], created: readonly CreatedRecord[]): readonly Row[] {
  const isCreated = new Set(created.map(({ kind, id }) => `${kind} ${id}`));
  return [...created.toReversed(), ...listed.filter(({ kind, id }) => !isCreated.has(`${kind} ${id}`))];
}

/** The choices of the filter, with the number of records. */
function listKinds(inventory: Inventory) {
  const sizeOf = (kind: string): number => inventory[kind]?.totalSize ?? 0;
  const choices = listedKinds.map(({ kind, list }) => ({
    value: kind,
    title: list.title,
    size: sizeOf(kind),
  }));
  return [{ value: "", title: "All", size: choices.reduce((sum, { size }) => sum + size, 0) }, ...choices];
}

/** Links a key to the key manager, and everything else to its story. */
function showName({ kind, id, name }: Row) {
  const path = listedKinds.find((listed) => listed.kind === kind)?.list.path;
  const shown = name || shortenId(id);
  if (path === undefined) return shown;
  return <a href={formatAddress(path, kind === "key" ? { key: id } : {})}>{shown}</a>;
}

/** "2026-11-23 13:58", or "–" if the server (RFC 3339) sent none. */
function formatTime(time: string): string {
  return time === "" ? "–" : time.slice(0, 16).replace("T", " ");
}

/** "Managed keys: Create a key" for a step, "Key manager" for a tool. */
function nameOrigin({ href, title }: CreatedAt): string {
  const { path } = parseAddress(href);
  // The menu contains the page titles.
  const page = document.querySelector(`nav a[href="#/${path}"]`)?.textContent ?? "This page";
  return title === undefined ? page : `${page}: ${title}`;
}
