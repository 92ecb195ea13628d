/** What both tables of the inventory show of a record. */
import { formatAddress } from "../../address.ts";
import { CopyButton } from "../../parts/copy-button.tsx";
import type { Column } from "../../parts/record-table.tsx";
import type { FoundRecord } from "../../record-kinds.ts";
import { shortenId } from "../key-id.ts";

export const idColumn: Column<FoundRecord> = {
  title: "ID",
  shows: ({ id, name }) => (
    <>
      <code title={id}>{shortenId(id)}</code> <CopyButton text={id} what={`ID of ${name || shortenId(id)}`} />
    </>
  ),
};

/** "2026-11-23 13:58:50", or "–" if there is none. @param time as the server says it (RFC 3339) */
export function formatTime(time: string): string {
  return time === "" ? "–" : time.slice(0, 19).replace("T", " ");
}

/** Where the reader can work with a record: a key in the key manager, others in their story. */
export function linkRecord(kind: string, path: string, id: string): string {
  return kind === "key" ? formatAddress("keys/manage", { key: id }) : formatAddress(path, {});
}
