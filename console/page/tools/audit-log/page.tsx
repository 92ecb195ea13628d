/** The audit log: searched page by page, or followed live. */

import { useEffect, useState } from "preact/hooks";
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { readEntry } from "../../audit.ts";
import { followCall } from "../../calls.ts";
import { useForm } from "../../form.ts";
import { ActionButton } from "../../parts/action-button.tsx";
import { FailureNote } from "../../parts/failure-note.tsx";
import { Choice, Filter, ofTime, TextField } from "../../parts/fields.tsx";
import { Lead } from "../../parts/lead.tsx";
import { checkLog, type LogVerdict, sayLog, showLog } from "../../parts/log-verdict.tsx";
import { settings } from "../../settings.ts";
import { useStream } from "../../stream.ts";
import { useTask } from "../../task.ts";
import { useAddress } from "../../use-address.ts";
import { formatNumber } from "../../values.ts";
import type { List } from "../lists.ts";
import { useChosen } from "../panel.tsx";
import * as log from "./entries.ts";
import { EntryPanel } from "./entry-panel.tsx";
import { EntryTable } from "./entry-table.tsx";

const { watchAuditLog, watchAuditVerification } = KmsService.method;

export function Page() {
  const key = useAddress().query.get("key") ?? "";
  return <Browser key={key} initial={{ ...log.noFilters, key }} />;
}

function Browser({ initial }: { readonly initial: log.AuditFilters }) {
  const chosen = useChosen("entry");
  const form = useForm<keyof log.AuditFilters>({ ...initial });
  /** The filters of the last search, and the query that continues it. */
  const [searched, setSearched] = useState({ filters: initial, query: log.toQuery(initial, new Date()) });
  const [list, setList] = useState<List<AuditEntry>>();
  /** Whether the stream's entries continue the list. */
  const [isLive, setLive] = useState(false);
  const loading = useTask();
  const stream = useStream<AuditEntry>(log.maxLiveEntries);
  const isFollowing = isLive && stream.status === "open";
  const listed = list?.items ?? [];
  const entries = isLive ? [...stream.items.toReversed(), ...listed].slice(0, log.maxLiveEntries) : listed;

  const load = (query: log.AuditQuery, known?: List<AuditEntry>): void =>
    void loading.run((caller) => log.loadEntries(caller, query, known), setList);
  const readQuery = (): log.AuditQuery => {
    const query = log.toQuery(form.values, new Date());
    setSearched({ filters: form.values, query });
    return query;
  };
  const search = (): void => {
    stream.close();
    setLive(false);
    setList(undefined);
    load(readQuery());
  };
  const follow = (): void => {
    const isCurrent = searched.filters === form.values;
    const known = isCurrent ? { nextPageToken: "", totalSize: 0, ...list, items: entries } : undefined;
    // Drops the answer of a search that is still running, possibly with other filters.
    void loading.run(
      async () => {},
      () => {},
    );
    setList(known);
    setLive(true);
    const after = isCurrent ? entries[0]?.sequence : undefined;
    stream.open(
      watchAuditLog,
      { ...readQuery(), ...(after !== undefined && { afterSequence: after }) },
      readEntry,
    );
  };
  useEffect(search, []);

  const entry = entries.find(({ sequence }) => String(sequence) === chosen);
  return (
    <div class="tool">
      <Lead title="Audit log">
        Every use of a key and every refused attempt; equal ones within five minutes share an entry. You see
        your own keys' entries; auditors and administrators see all entries. The{" "}
        <a href="#/keys/manage">key manager</a> lists the keys.
        {!settings.wantsToken && " This server is open, so every caller has the name system."}
      </Lead>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          search();
        }}
      >
        <div class="fields">
          <TextField label="Key ID or name" {...form.bind("key")} />
          <Filter label="Operation" options={log.operations} {...form.bind("operation")} />
          <Filter label="Outcome" options={log.outcomes} {...form.bind("outcome")} />
          <TextField label="Caller" {...form.bind("user")} />
          <Choice label="Period" options={log.periods} {...form.bind("period")} />
          {form.values.period === log.ownPeriod && (
            <>
              <TextField attributes={ofTime} label="From (UTC)" {...form.bind("from")} />
              <TextField attributes={ofTime} label="To (UTC)" {...form.bind("to")} />
            </>
          )}
        </div>
        <p class="act">
          <button type="submit" class="primary">
            Search
          </button>
          <button type="button" onClick={isFollowing ? stream.close : follow}>
            {isFollowing ? "Stop watching" : "Follow new entries"}
          </button>
        </p>
      </form>
      {loading.failure && <FailureNote failure={loading.failure} />}
      {isLive && stream.failure && <FailureNote failure={stream.failure} />}
      <p role={isLive ? undefined : "status"}>
        {isLive ? log.describeStream(entries.length, isFollowing) : log.describeList(list)}
      </p>
      {entries.length > 0 && <EntryTable entries={entries} chosen={chosen} />}
      {!isLive && list && list.nextPageToken !== "" && (
        <ActionButton task={loading} onClick={() => load(searched.query, list)}>
          Load more entries
        </ActionButton>
      )}
      <Verification />
      {entry && <EntryPanel key={entry.sequence} entry={entry} />}
    </div>
  );
}

/** Has the server verify the whole log, and shows its progress. */
function Verification() {
  const task = useTask();
  const [said, setSaid] = useState("");
  const [verdict, setVerdict] = useState<LogVerdict>();
  const verify = async (): Promise<LogVerdict> => {
    for await (const { entriesVerified, entriesTotal, result } of followCall(watchAuditVerification, {})) {
      if (result !== undefined) return checkLog(result);
      setSaid(`${formatNumber(entriesVerified)} of ${formatNumber(entriesTotal)} entries verified …`);
    }
    throw new Error("the server ended the verification without a result");
  };
  const show = (found: LogVerdict): void => {
    setVerdict(found);
    setSaid(sayLog(found));
  };
  const start = (): void => {
    setVerdict(undefined);
    void task.run(verify, show);
  };
  return (
    <div>
      <p class="act">
        <ActionButton task={task} onClick={start}>
          Verify the whole log
        </ActionButton>
        <span class="hint" role="status">
          {(!task.failure && said) ||
            "All hashes, links and signed checkpoints. Requires the role auditor or admin."}
        </span>
      </p>
      {task.failure && <FailureNote failure={task.failure} />}
      {verdict && showLog(verdict)}
    </div>
  );
}
