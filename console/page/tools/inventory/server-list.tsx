/** The server's records of one kind, page by page. */
import { useEffect, useState } from "preact/hooks";
import { noteStates, useCreatedRecords } from "../../created-records.ts";
import { ActionButton } from "../../parts/action-button.tsx";
import { FailureNote } from "../../parts/failure-note.tsx";
import { Badge, type Column, RecordTable, When } from "../../parts/record-table.tsx";
import type { FoundRecord } from "../../record-kinds.ts";
import { useTask } from "../../task.ts";
import { formatNumber } from "../../values.ts";
import { shortenId } from "../key-id.ts";
import { formatTime, idColumn, linkRecord } from "./columns.tsx";
import { type ListedKind, loadRecords, type RecordPage } from "./load-records.ts";

export function ServerList({ kind }: { readonly kind: ListedKind }) {
  const { title, path } = kind.list;
  const [page, setPage] = useState<RecordPage>();
  const created = new Set(useCreatedRecords().map(({ id }) => id));
  const loading = useTask();
  const loadMore = (known?: RecordPage): void =>
    void loading.run(
      (caller) => loadRecords(caller, kind, known?.nextPageToken ?? ""),
      (next) => {
        setPage({ ...next, records: [...(known?.records ?? []), ...next.records] });
        noteStates(next.records);
      },
    );
  useEffect(() => loadMore(), []);

  const columns: readonly Column<FoundRecord>[] = [
    {
      title: "Name",
      wraps: true,
      shows: ({ id, name }) => (
        <>
          <a href={linkRecord(kind.kind, path, id)}>{name || shortenId(id)}</a>
          {created.has(id) && <span class="hint">created in this tab</span>}
        </>
      ),
    },
    idColumn,
    { title: "State", shows: ({ state }) => <Badge state={state} /> },
    { title: "Created (UTC)", shows: ({ createdAt }) => <When time={formatTime(createdAt).slice(0, 16)} /> },
  ];
  return (
    <div class="record-list" data-empty={page?.records.length === 0}>
      <h3>
        {title} {page && <span class="size">{formatNumber(page.totalSize)}</span>}
      </h3>
      {loading.failure && <FailureNote failure={loading.failure} />}
      {page?.records.length === 0 && (
        <p class="hint">
          None yet. <a href={`#/${path}`}>Create one.</a>
        </p>
      )}
      {page !== undefined && page.records.length > 0 && (
        <RecordTable label={title} columns={columns} rows={page.records} identify={({ id }) => id} />
      )}
      {page !== undefined && page.nextPageToken !== "" && (
        <ActionButton task={loading} onClick={() => loadMore(page)}>
          Load more<span class="unseen"> {title}</span>
        </ActionButton>
      )}
    </div>
  );
}
