import type { ListKeysRequest } from "#gen/kms/kms_service_pb.ts";
import type { Principal } from "../../records/ownership.ts";
import { cutPage, maxPageBytes, sizeInJson } from "../../records/pages.ts";
import { defaultOrder } from "../../records/table-declaration.ts";
import { readPage } from "../fields.ts";
import { type FindDeps, nameOtherOwners } from "./find-key.ts";
import { packListed, type RecordMessage } from "./record-message.ts";
import type { StoredKey } from "./store.ts";

/** Keys whose names are read together. A name's labels may take 70 KB, and all its versions show them. */
const chunkKeys = 40;

/**
 * Lists keys without their public keys. A page ends before it gets too large for a message, whatever the page
 * size.
 *
 * @throws FIELD_INVALID for a page token that belongs to another list
 */
export async function listKeys(
  deps: Pick<FindDeps, "keys" | "users">,
  { status: state, algorithm, usage, name, label, ...fields }: ListKeysRequest,
  principal: Principal,
) {
  const { keys } = deps;
  const query = { principal, filter: { state, algorithm, usage, name, label } };
  const list = keys.nameList(query);
  const request = readPage(fields, list);
  const found = await keys.list(request, query);
  const ownerOf = nameOtherOwners(deps, principal);
  const shown: Shown[] = [];
  for (let bytes = 0; bytes <= maxPageBytes && shown.length < found.rows.length; ) {
    const chunk = found.rows.slice(shown.length, shown.length + chunkKeys);
    const nameOf = await keys.names.findOf(chunk.map(({ record }) => record));
    for (const key of chunk) {
      const one = {
        row: key.row,
        message: packListed(key, nameOf(key.record), await ownerOf(key.record.owner)),
      };
      bytes += sizeOf(one);
      shown.push(one);
    }
  }
  const page = cutPage(shown, request, list, ({ row }) => Number(row[defaultOrder]), sizeOf);
  return {
    keys: page.rows.map(({ message }) => message),
    nextPageToken: page.nextPageToken || found.nextPageToken,
    totalSize: await keys.count(query),
  };
}

interface Shown {
  readonly row: StoredKey["row"];
  readonly message: RecordMessage;
}

function sizeOf({ message }: Shown): number {
  return sizeInJson(message) + sizeInJson(message.labels);
}
