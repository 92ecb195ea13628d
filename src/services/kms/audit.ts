/** Which audit log entries a caller may read, and their messages. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { AuditEntrySchema } from "#gen/kms/audit_pb.ts";
import type { EntryFilter } from "../../audit/entry-filter.ts";
import type { StoredEntry } from "../../audit/log.ts";
import type { Principal } from "../../records/ownership.ts";
import { type EntryQuery, readFilter } from "../entry-log.ts";
import { unknownSubject } from "./event.ts";
import { type FindDeps, findNamedId, findOwner } from "./find-key.ts";
import { parseHandle } from "./handle.ts";

/** Filters as requests contain them; empty strings match everything. */
export interface AuditQuery extends EntryQuery {
  /** Handle of a key; a name without a version stands for all its versions. */
  readonly keyId: string;
}

/** A reader, and whether they may read entries of keys that they do not own. */
export interface AuditReader {
  readonly principal: Principal;
  readonly isAuditor: boolean;
}

/** Turns a query into a filter. A caller who is not an auditor sees only entries of their own keys. */
export async function toFilter(
  deps: FindDeps,
  { keyId: handle, ...query }: AuditQuery,
  reader: AuditReader,
): Promise<EntryFilter> {
  return {
    ...readFilter(query),
    ...(handle && (await findSubject(deps, handle, reader))),
    ...(!reader.isAuditor && { owner: reader.principal.userId }),
  };
}

async function findSubject(
  deps: FindDeps,
  handle: string,
  { principal, isAuditor }: AuditReader,
): Promise<EntryFilter> {
  const parsed = parseHandle(handle);
  if (parsed.kind === "id") return { keyId: unknownSubject(parsed.keyId).keyId };
  // An unknown name has only entries of refusals, so it is indistinguishable from a name that the caller may
  // not see.
  if (parsed.version !== undefined)
    return { keyId: (await findNamedId(deps, parsed, principal)) ?? unknownSubject(handle).keyId };
  const owner = await findOwner(deps, parsed, principal);
  // Without this, the reader's own ID would replace the owner, and their key of the same name would match.
  if (!isAuditor && owner !== principal.userId) return { keyId: unknownSubject(handle).keyId };
  return { owner, keyName: parsed.name };
}

export function packEntry(entry: StoredEntry): MessageInitShape<typeof AuditEntrySchema> {
  const { owner: _owner, keyName: _name, ...shown } = entry;
  return { ...shown, timestamp: timestampFromDate(entry.timestamp) };
}
