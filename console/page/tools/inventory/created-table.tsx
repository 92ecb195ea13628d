/** The records that the reader has created in this tab, newest first. */
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { parseAddress } from "../../address.ts";
import { type CreatedAt, type CreatedRecord, useCreatedRecords } from "../../created-records.ts";
import { CopyButton } from "../../parts/copy-button.tsx";
import { Scroller } from "../../parts/scroller.tsx";
import { When } from "../../parts/when.tsx";
import { settings } from "../../settings.ts";
import { stories } from "../../stories.ts";
import { formatSecond } from "../../time.ts";
import { formatNumber } from "../../values.ts";
import { shortenId } from "../key-id.ts";
import { linkRecord } from "./lists.ts";
import { State } from "./state.tsx";

export function CreatedTable() {
  const records = useCreatedRecords();
  if (records.length === 0) return <Suggestions />;
  return (
    <>
      <p role="status">
        {formatNumber(records.length)} {records.length === 1 ? "record" : "records"}, newest first.
      </p>
      <Scroller class="records" label="Created in this tab">
        <table>
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Kind</th>
              <th scope="col">ID</th>
              <th scope="col">State</th>
              <th scope="col">Created (UTC)</th>
              <th scope="col">Created by</th>
            </tr>
          </thead>
          <tbody>
            {records.toReversed().map((record) => (
              <CreatedRow key={`${record.kind} ${record.id} ${record.createdAt.getTime()}`} {...record} />
            ))}
          </tbody>
        </table>
      </Scroller>
    </>
  );
}

function CreatedRow({ kind, id, name, state, createdAt, at }: CreatedRecord) {
  // A log-in token has no ID, and is not shown: anyone who sees it can use it.
  const hasId = kind !== "log-in token";
  const shown = name || shortenId(id);
  return (
    <tr>
      <th scope="row" class="wraps">
        {kind === "key" ? <a href={linkRecord(kind, "", id)}>{shown}</a> : shown}
      </th>
      <td data-label="Kind">{kind}</td>
      <td data-label="ID">
        {hasId && (
          <>
            <code title={id}>{shortenId(id)}</code> <CopyButton text={id} what={`ID of ${shown}`} />
          </>
        )}
      </td>
      <td data-label="State">
        {hasId ? (
          <State state={state} />
        ) : (
          <span class="hint">expires {id.slice(0, 16).replace("T", " ")}</span>
        )}
      </td>
      <td data-label="Created (UTC)">
        <When time={timestampFromDate(createdAt)} format={formatSecond} />
      </td>
      <td data-label="Created by" class="wraps">
        <a href={at.href}>{nameOrigin(at)}</a>
      </td>
    </tr>
  );
}

/** "Managed keys: Create a key" for a step, "Key manager" for a tool. */
function nameOrigin({ href, title }: CreatedAt): string {
  const { path } = parseAddress(href);
  const page = stories.find((story) => story.path === path)?.title;
  return [page ?? (path === "keys/manage" ? "Key manager" : "This page"), title].filter(Boolean).join(": ");
}

/** Stories that create records. */
const creating = "keys devices tunnel governance chain provenance contracts wallets".split(" ");

function Suggestions() {
  const shown = stories.filter(
    ({ path, service }) => creating.includes(path) && settings.services.has(service),
  );
  return (
    <div class="note">
      <p>
        Nothing yet. What you create with a story or the key manager appears here, with a link to the step
        that created it. These stories create records:
      </p>
      <ul class="suggestions">
        {shown.map(({ path, title }) => (
          <li key={path}>
            <a href={`#/${path}`}>{title}</a>
          </li>
        ))}
      </ul>
    </div>
  );
}
