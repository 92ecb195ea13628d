/** The records that the reader has created in this tab, newest first. */
import { parseAddress } from "../../address.ts";
import { type CreatedAt, type CreatedRecord, useCreatedRecords } from "../../created-records.ts";
import { Badge, type Column, RecordTable, When } from "../../parts/record-table.tsx";
import { kinds } from "../../record-kinds.ts";
import { settings } from "../../settings.ts";
import { formatNumber } from "../../values.ts";
import { shortenId } from "../key-id.ts";
import { formatTime, idColumn, linkRecord } from "./columns.tsx";

// A log-in token has no ID and is not shown: anyone who sees it can use it.
const isToken = ({ kind }: CreatedRecord): boolean => kind === "log-in token";

const columns: readonly Column<CreatedRecord>[] = [
  {
    title: "Name",
    wraps: true,
    shows: ({ kind, id, name }) => {
      const shown = name || shortenId(id);
      return kind === "key" ? <a href={linkRecord(kind, "", id)}>{shown}</a> : shown;
    },
  },
  { title: "Kind", shows: ({ kind }) => kind },
  { ...idColumn, shows: (record) => !isToken(record) && idColumn.shows(record) },
  {
    title: "State",
    shows: (record) =>
      isToken(record) ? (
        <span class="hint">expires {formatTime(record.id).slice(0, 16)}</span>
      ) : (
        <Badge state={record.state} />
      ),
  },
  { title: "Created (UTC)", shows: ({ createdAt }) => <When time={formatTime(createdAt)} /> },
  { title: "Created by", wraps: true, shows: ({ at }) => <a href={at.href}>{nameOrigin(at)}</a> },
];

export function CreatedTable() {
  const records = useCreatedRecords();
  if (records.length === 0) return <Suggestions />;
  return (
    <>
      <p role="status">
        {formatNumber(records.length)} {records.length === 1 ? "record" : "records"}, newest first.
      </p>
      <RecordTable
        label="Created in this tab"
        columns={columns}
        rows={records.toReversed()}
        identify={({ kind, id, createdAt }) => `${kind} ${id} ${createdAt}`}
      />
    </>
  );
}

/** "Managed keys: Create a key" for a step, "Key manager" for a tool. */
function nameOrigin({ href, title }: CreatedAt): string {
  const { path } = parseAddress(href);
  // The menu contains the page titles.
  const page = document.querySelector(`nav a[href="#/${path}"]`)?.textContent ?? "This page";
  return title === undefined ? page : `${page}: ${title}`;
}

function Suggestions() {
  const shown = kinds.filter(({ service, list }) => list !== undefined && settings.services.has(service));
  return (
    <div class="note">
      <p>
        Nothing yet. Records that you create in a story or the key manager appear here, with a link to the
        step that created them. You can create:
      </p>
      <ul class="suggestions">
        {shown.map(({ kind, list }) => (
          <li key={kind}>
            <a href={`#/${list?.path}`}>{list?.title}</a>
          </li>
        ))}
      </ul>
    </div>
  );
}
