/** The audit log: searched page by page, or followed live. */
import { useEffect, useState } from "preact/hooks";
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { readEntry } from "../../audit.ts";
import { useForm } from "../../form.ts";
import { ActionButton } from "../../parts/action-button.tsx";
import { FailureNote } from "../../parts/failure-note.tsx";
import { StreamControls } from "../../parts/stream-controls.tsx";
import { useStream } from "../../stream.ts";
import { useTask } from "../../task.ts";
import { useAddress } from "../../use-address.ts";
import * as log from "./entries.ts";
import { EntryTable } from "./entry-table.tsx";
import { AuditFilterFields } from "./filter-fields.tsx";

const { watchAuditLog } = KmsService.method;

export function Page() {
  const key = useAddress().query.get("key") ?? "";
  return (
    <div class="tool">
      <header class="lead">
        <h1 tabIndex={-1}>Audit log</h1>
        <p>
          Every use of a key and every refused attempt. You see your own keys' entries; auditors and
          administrators see all entries. The <a href="#/keys/manage">key manager</a> lists the keys.
        </p>
      </header>
      <Browser key={key} initial={{ ...log.noFilters, key }} />
    </div>
  );
}

/** The last search, and the query that continues it. */
interface Searched {
  readonly filters: log.AuditFilters;
  readonly query: log.AuditQuery;
}

function Browser({ initial }: { readonly initial: log.AuditFilters }) {
  const form = useForm<keyof log.AuditFilters>({ ...initial });
  const [searched, setSearched] = useState<Searched>();
  const [list, setList] = useState<log.EntryList>();
  /** Entries older than the stream's; undefined unless the reader follows the log. */
  const [before, setBefore] = useState<readonly AuditEntry[]>();
  const loading = useTask();
  const stream = useStream<AuditEntry>(log.maxLiveEntries);
  const entries = before ? log.mergeEntries(before, stream.items) : (list?.entries ?? []);

  const load = ({ query }: Searched, known?: log.EntryList): void =>
    void loading.run((caller) => log.loadEntries(caller, query, known), setList);
  const remember = (): Searched => {
    const next = { filters: form.values, query: log.toQuery(form.values, new Date()) };
    setSearched(next);
    return next;
  };
  const search = (): void => {
    stream.close();
    setBefore(undefined);
    setList(undefined);
    load(remember());
  };
  const follow = (): void => {
    const isWhole = before !== undefined || list?.nextPageToken === "";
    const start = isWhole && searched?.filters === form.values ? entries : [];
    const after = start.at(-1)?.sequence;
    setBefore(start);
    const { query } = remember();
    stream.open(watchAuditLog, { ...query, ...(after !== undefined && { afterSequence: after }) }, readEntry);
  };
  useEffect(search, []);

  return (
    <>
      <AuditFilterFields
        form={form}
        onSearch={search}
        onFollow={follow}
        isFollowing={stream.status === "open"}
      />
      {loading.failure && <FailureNote failure={loading.failure} />}
      {before && <StreamControls stream={stream} />}
      <p role={before ? undefined : "status"}>
        {before ? log.describeStream(entries.length, stream.status === "open") : log.describeList(list)}
      </p>
      {entries.length > 0 && <EntryTable entries={before ? entries.toReversed() : entries} />}
      {!before && searched && list && list.nextPageToken !== "" && (
        <ActionButton task={loading} onClick={() => load(searched, list)}>
          Load more entries
        </ActionButton>
      )}
    </>
  );
}
