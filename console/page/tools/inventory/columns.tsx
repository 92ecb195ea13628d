/** Columns shared by both inventory tables. */
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

/**
 * "2026-11-23 13:58:50", or "–" if absent.
 *
 * @param time the server's time (RFC 3339)
 */
export function formatTime(time: string): string {
  return time === "" ? "–" : time.slice(0, 19).replace("T", " ");
}

/** Where to work with a record: keys in the key manager, everything else in its story. */
export function linkRecord(kind: string, path: string, id: string): string {
  return kind === "key" ? formatAddress("keys/manage", { key: id }) : formatAddress(path, {});
}
