/** Dependencies and checks that all groups of calls share. */
import { protoCamelCase } from "@bufbuild/protobuf/reflect";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import { refuse, refuseField } from "../../src/errors.ts";
import { readCaller as readOwnCaller, readPrincipal } from "../../src/identity/principal.ts";
import type { Principal } from "../../src/records/ownership.ts";
import type { KeyDomain } from "../../src/services/kms/domain.ts";
import { keyRingNotFound } from "./reasons.ts";
import type { RingRecord, RingStore } from "./tables.ts";

export type GoogleDeps = ReturnType<KeyDomain["open"]> & { readonly rings: RingStore };

/** The caller and its abort signal. Google's interface has no idempotency keys. */
export function readCaller(context: HandlerContext) {
  return { ...readOwnCaller(context), idempotentCall: undefined };
}

/**
 * Limits a call to the caller's own records. Two users may have the same names, so a list of both would be
 * ambiguous.
 */
export function readOwner(context: HandlerContext): Principal & { readonly owner: string } {
  const principal = readPrincipal(context);
  return { ...principal, owner: principal.userId };
}

/**
 * Finds one of the caller's key rings.
 *
 * @throws KEY_RING_NOT_FOUND
 */
export async function requireRing({ rings }: GoogleDeps, owner: string, name: string): Promise<RingRecord> {
  const ring = await rings.find(owner, name);
  if (ring === undefined) throw refuse(keyRingNotFound, `key ring ${name} does not exist`, { name });
  return ring;
}

/**
 * Checks that an update changes only the field that can be changed.
 *
 * @throws FIELD_INVALID
 */
export function requireMask(mask: FieldMask | undefined, field: string): void {
  const paths = mask?.paths ?? [];
  if (paths.length === 0) throw refuseField("updateMask", `is empty; send "${field}"`);
  const other = paths.find((path) => path !== field);
  if (other !== undefined)
    throw refuseField("updateMask", `"${protoCamelCase(other)}" cannot be changed; only "${field}" can`);
}
