/** Builds TUF metadata (TUF specification 1.0, section 4). */
import { createHash } from "node:crypto";
import type { Json, JsonObject } from "./canonical-json.ts";
import { type RoleKey, type TufKey, type TufSignature, toTufKey } from "./keys.ts";
import type { Metadata, TargetRecord } from "./tables.ts";

/** The roles whose keys are in kms and named by the root. */
export const onlineRoles = ["targets", "snapshot", "timestamp"] as const;
export type OnlineRole = (typeof onlineRoles)[number];

/** Clients accept every 1.x. The newest specification is 1.0.34; this is the version that python-tuf writes. */
const specVersion = "1.0.31";

/** Type, version and expiry of a role's metadata. */
export interface Head {
  readonly version: number;
  /** Whole seconds. */
  readonly expiresAt: Date;
}

function openSigned(type: string, { version, expiresAt }: Head): JsonObject {
  return { _type: type, spec_version: specVersion, version, expires: formatTime(expiresAt) };
}

/** Formats a time as TUF does: in UTC, without fractions of a second. */
function formatTime(time: Date): string {
  return `${time.toISOString().slice(0, 19)}Z`;
}

/** Keys and the number of them that must sign. */
export interface Quorum {
  readonly keys: readonly RoleKey[];
  readonly threshold: number;
}

export function buildRoot(head: Head, roles: Readonly<Record<OnlineRole | "root", Quorum>>): JsonObject {
  const named = Object.entries(roles).map(([role, { keys, threshold }]) => ({
    role,
    keys: keys.map(toTufKey),
    threshold,
  }));
  return {
    ...openSigned("root", head),
    consistent_snapshot: true,
    keys: packKeys(named.flatMap(({ keys }) => keys)),
    roles: Object.fromEntries(
      named.map(({ role, keys, threshold }) => [role, { keyids: listIds(keys), threshold }]),
    ),
  };
}

function packKeys(keys: readonly TufKey[]): JsonObject {
  return Object.fromEntries(keys.map(({ tufKeyId, key }) => [tufKeyId, key]));
}

function listIds(keys: readonly TufKey[]): string[] {
  return [...new Set(keys.map(({ tufKeyId }) => tufKeyId))];
}

/** A role to which the role targets delegates the targets of a device type. */
export interface DelegatedRole {
  readonly role: string;
  readonly key: RoleKey;
}

/**
 * Builds the metadata of targets, or of a delegated role.
 *
 * @param delegated undefined for a delegated role
 */
export function buildTargets(
  head: Head,
  targets: readonly TargetRecord[],
  delegated: readonly DelegatedRole[] | undefined,
): JsonObject {
  const files = Object.fromEntries(targets.map((target) => [target.path, packTarget(target)]));
  const signed = { ...openSigned("targets", head), targets: files };
  if (delegated === undefined || delegated.length === 0) return signed;
  const named = delegated.map(({ role, key }) => ({ role, key: toTufKey(key) }));
  const roles = named.map(({ role, key: { tufKeyId } }) => ({
    name: role,
    keyids: [tufKeyId],
    threshold: 1,
    // Only this role provides these paths.
    terminating: true,
    paths: [`${role}/*`],
  }));
  return { ...signed, delegations: { keys: packKeys(named.map(({ key }) => key)), roles } };
}

function packTarget({ length, sha256, sha512, version, deviceTypes }: TargetRecord): JsonObject {
  const custom: JsonObject = {
    ...(version !== "" && { version }),
    ...(deviceTypes.length > 0 && { deviceTypes }),
  };
  return {
    length,
    hashes: { sha256: toHex(sha256), sha512: toHex(sha512) },
    ...(Object.keys(custom).length > 0 && { custom }),
  };
}

/**
 * Returns the role that provides a target: a delegated role has the targets with two segments of which the
 * first is its name, because "*" does not match a slash.
 */
export function findRoleOf(path: string, delegated: ReadonlySet<string>): string {
  const [type = "", ...rest] = path.split("/");
  return rest.length === 1 && delegated.has(type) ? type : "targets";
}

/** Builds a snapshot of the newest metadata of targets and of all delegated roles, including removed ones. */
export function buildSnapshot(head: Head, files: readonly Metadata[]): JsonObject {
  return { ...openSigned("snapshot", head), meta: Object.fromEntries(files.map(describeFile)) };
}

export function buildTimestamp(head: Head, snapshot: Metadata): JsonObject {
  return { ...openSigned("timestamp", head), meta: Object.fromEntries([describeFile(snapshot)]) };
}

function describeFile({ role, version, length, sha256 }: Metadata): [string, Json] {
  return [`${role}.json`, { version, length, hashes: { sha256: toHex(sha256) } }];
}

/** Joins `signed` and its signatures to a file. */
export function packFile(signed: JsonObject, signatures: readonly TufSignature[]): Uint8Array {
  return Buffer.from(JSON.stringify({ signatures, signed }));
}

export function hashContent(content: Uint8Array): Uint8Array {
  return createHash("sha256").update(content).digest();
}

export function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}

/** Returns a time some seconds later, in whole seconds. */
export function addSeconds(time: Date, seconds: number): Date {
  return new Date((Math.floor(time.getTime() / 1000) + seconds) * 1000);
}
