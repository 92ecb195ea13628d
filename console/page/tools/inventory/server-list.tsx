/** The records of one kind that the server lists, page by page. */
import { useEffect, useState } from "preact/hooks";
import { noteStates, useCreatedRecords } from "../../created-records.ts";
import { ActionButton } from "../../parts/action-button.tsx";
import { CopyButton } from "../../parts/copy-button.tsx";
import { FailureNote } from "../../parts/failure-note.tsx";
import { Scroller } from "../../parts/scroller.tsx";
import { When } from "../../parts/when.tsx";
import { useTask } from "../../task.ts";
import { formatMinute } from "../../time.ts";
import { formatNumber } from "../../values.ts";
import { shortenId } from "../key-id.ts";
import { type ListedRecord, linkRecord, type RecordList, type RecordPage } from "./lists.ts";
import { State } from "./state.tsx";

export function ServerList({ list }: { readonly list: RecordList }) {
  const { kind, title, path, load } = list;
  const [page, setPage] = useState<RecordPage>();
  const loading = useTask();
  const loadMore = (known?: RecordPage): void =>
    void loading.run(
      (caller) => load(caller, known?.nextPageToken ?? ""),
      (next) => {
        setPage({ ...next, records: [...(known?.records ?? []), ...next.records] });
        noteStates(next.records.map((record) => ({ kind, ...record })));
      },
    );
  useEffect(() => loadMore(), []);

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
      {page !== undefined && page.records.length > 0 && <RecordTable {...list} records={page.records} />}
      {page !== undefined && page.nextPageToken !== "" && (
        <ActionButton task={loading} onClick={() => loadMore(page)}>
          Load more<span class="unseen"> {title}</span>
        </ActionButton>
      )}
    </div>
  );
}

interface RecordTableProps extends Pick<RecordList, "kind" | "title" | "path"> {
  readonly records: readonly ListedRecord[];
}

function RecordTable({ kind, title, path, records }: RecordTableProps) {
  const created = new Set(useCreatedRecords().map((record) => record.id));
  return (
    <Scroller class="records" label={title}>
      <table>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">ID</th>
            <th scope="col">State</th>
            <th scope="col">Created (UTC)</th>
          </tr>
        </thead>
        <tbody>
          {records.map(({ id, name, state, createdAt }) => (
            <tr key={id}>
              <th scope="row" class="wraps">
                <a href={linkRecord(kind, path, id)}>{name || shortenId(id)}</a>
                {created.has(id) && <span class="hint">created in this tab</span>}
              </th>
              <td data-label="ID">
                <code title={id}>{shortenId(id)}</code> <CopyButton text={id} what={`ID of ${name || id}`} />
              </td>
              <td data-label="State">
                <State state={state} />
              </td>
              <td data-label="Created (UTC)">
                <When time={createdAt} format={formatMinute} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroller>
  );
}
