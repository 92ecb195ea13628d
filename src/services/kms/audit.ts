/** Which entries of the audit log a caller reads, and their messages. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { AuditEntrySchema } from "#gen/kms/audit_pb.ts";
import type { AuditEntry } from "../../audit/chain.ts";
import type { EntryFilter } from "../../audit/entry-filter.ts";
import type { Principal } from "../../records/ownership.ts";
import { type EntryQuery, readFilter } from "../entry-log.ts";
import { unknownSubject } from "./event.ts";
import { type FindDeps, findNamedId, findOwner } from "./find-key.ts";
import { parseHandle } from "./handle.ts";

/** Which entries to read; empty texts match all. */
export interface AuditQuery extends EntryQuery {
  /** The handle of a key; a name without a version stands for all its versions. */
  readonly keyId: string;
}

/** The caller of a read, and whether they may read the entries of keys that they do not own. */
export interface AuditReader {
  readonly principal: Principal;
  readonly isAuditor: boolean;
}

/** Turns a query into a filter. A caller who is not an auditor sees only the entries of their own keys. */
export async function toFilter(
  deps: FindDeps,
  { keyId: handle, ...query }: AuditQuery,
  { principal, isAuditor }: AuditReader,
): Promise<EntryFilter> {
  return {
    ...readFilter(query),
    ...(handle && (await findSubject(deps, handle, principal))),
    ...(!isAuditor && { owner: principal.userId }),
  };
}

async function findSubject(deps: FindDeps, handle: string, principal: Principal): Promise<EntryFilter> {
  const parsed = parseHandle(handle);
  if (parsed.kind === "id") return { keyId: unknownSubject(parsed.keyId).keyId };
  // A name that does not exist has no entries but of refusals, like one that the caller may not know of.
  if (parsed.version === undefined)
    return { owner: await findOwner(deps, parsed, principal), keyName: parsed.name };
  return { keyId: (await findNamedId(deps, parsed, principal)) ?? unknownSubject(handle).keyId };
}

/** An entry as a message. */
export function packEntry(entry: AuditEntry): MessageInitShape<typeof AuditEntrySchema> {
  const { owner: _owner, keyName: _name, ...shown } = entry;
  return { ...shown, timestamp: timestampFromDate(entry.timestamp) };
}
