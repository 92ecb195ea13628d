/** Lists, searches and creates keys. */
import type { KeyRecord } from "#gen/kms/key_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { compositeNames, kemNames, mlDsaNames, slhDsaNames } from "../../../../src/crypto/algorithms.ts";
import type { Caller } from "../../caller.ts";
import { shortenId } from "../key-id.ts";

const { createKey, getKey, listKeys } = KmsService.method;

export const statuses = ["ACTIVE", "ROTATED", "DISABLED", "DESTROY_SCHEDULED", "DESTROYED"];
export const algorithms = [...mlDsaNames, ...slhDsaNames, ...compositeNames, ...kemNames];

/** What keys of each usage do. The first algorithm is the default. */
const kinds: Readonly<Record<string, KeyKind>> = {
  SIGN: {
    algorithms: ["ML-DSA-65", "ML-DSA-44", "ML-DSA-87", ...slhDsaNames, ...compositeNames],
    does: "signs",
    rotated: "verifies",
    afterDestruction: "Its signatures stay valid.",
    operations: ["SIGN", "VERIFY", "GET_KEY"],
  },
  KEM: {
    algorithms: ["ML-KEM-768", "ML-KEM-512", "ML-KEM-1024", "X-Wing"],
    does: "encapsulates",
    rotated: "decapsulates",
    afterDestruction: "Shared secrets encapsulated for it can no longer be recovered.",
    operations: ["ENCAPSULATE", "DECAPSULATE", "GET_KEY"],
  },
  ENCRYPT: {
    algorithms: ["X-Wing", "ML-KEM-768", "ML-KEM-1024"],
    does: "encrypts",
    rotated: "decrypts",
    afterDestruction: "Data encrypted with it is lost, unless you re-encrypt it first.",
    operations: ["ENCRYPT", "DECRYPT", "GET_KEY"],
  },
};

interface KeyKind {
  readonly algorithms: readonly string[];
  readonly does: string;
  /** What a rotated key still does. */
  readonly rotated: string;
  /** What destruction means for earlier uses. */
  readonly afterDestruction: string;
  /** The operations that a grant can allow. */
  readonly operations: readonly string[];
}

export const usages = Object.keys(kinds);

export function findKind(usage: string): KeyKind {
  const kind = kinds[usage];
  if (kind === undefined) throw new Error(`unknown usage ${usage}`);
  return kind;
}

/** Server-side filters; an empty text selects everything. */
export interface KeyFilters {
  readonly status: string;
  readonly algorithm: string;
  readonly usage: string;
  /** "team=payments" */
  readonly label: string;
}

/** The first keys of a list. */
export interface KeyList {
  readonly keys: readonly KeyRecord[];
  /** Empty if these are all. */
  readonly nextPageToken: string;
  readonly totalSize: number;
}

/** Keys to load at a time. */
export const pageSize = 50;
const maxPageSize = 1000;

/**
 * Loads keys up to a count.
 *
 * @param known the keys loaded so far
 */
export async function loadKeys(
  { call }: Caller,
  filters: KeyFilters,
  count: number,
  known?: KeyList,
): Promise<KeyList> {
  let keys = known?.keys ?? [];
  let pageToken = known?.nextPageToken ?? "";
  for (;;) {
    const wanted = Math.min(maxPageSize, Math.max(1, count - keys.length));
    const page = await call(listKeys, { ...filters, pageSize: wanted, pageToken });
    keys = [...keys, ...page.keys];
    pageToken = page.nextPageToken;
    if (pageToken === "" || keys.length >= count)
      return { keys, nextPageToken: pageToken, totalSize: page.totalSize };
  }
}

/** Selects keys whose name, alias, ID or labels contain every word of a text, ignoring case. */
export function searchKeys(keys: readonly KeyRecord[], text: string): readonly KeyRecord[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return keys.filter(({ name = "", alias, keyId, labels }) => {
    const searched = [name, alias, keyId, ...formatLabels(labels)].join("\n").toLowerCase();
    return words.every((word) => searched.includes(word));
  });
}

/** A key with the details of its name that the page shows. */
export interface KeyDetails {
  readonly key: KeyRecord;
  /** The name's versions, oldest first; empty if the key has no name or another user owns the name. */
  readonly versions: readonly KeyRecord[];
  /** The handle of all versions: the name, or the key ID if there are no versions. "name/release". */
  readonly handle: string;
}

export async function loadDetails({ call }: Caller, keyId: string): Promise<KeyDetails> {
  const { result: key } = await call(getKey, { keyId });
  if (key === undefined) throw new Error("the server sent no key");
  const alone = { key, versions: [], handle: keyId };
  if (key.name === undefined) return alone;
  const handle = `name/${key.name}`;
  const { versions } = await call(getKey, { keyId: handle }).catch(() => ({ versions: [] }));
  // Two users may use the same name. An administrator sees both users' keys, but the handle refers to only
  // one of them.
  return versions.some((version) => version.keyId === keyId) ? { key, versions, handle } : alone;
}

/** A new key's fields, as the reader types them. */
export interface NewKey {
  readonly name: string;
  readonly alias: string;
  readonly usage: string;
  readonly algorithm: string;
  readonly labels: string;
  /** Days between automatic rotations; empty for none. */
  readonly rotationDays: string;
}

const secondsPerDay = 86_400;

export async function createNewKey({ call }: Caller, fields: NewKey): Promise<KeyRecord> {
  const { name, alias, usage, algorithm, rotationDays } = fields;
  const { result } = await call(createKey, {
    ...{ name, alias, usage, algorithm, labels: parseLabels(fields.labels) },
    ...(rotationDays !== "" && { rotationPeriodSeconds: Math.round(Number(rotationDays) * secondsPerDay) }),
  });
  if (result === undefined) throw new Error("the server sent no key");
  return result;
}

/** @param text comma-separated pairs: "team=payments, stage=production" */
export function parseLabels(text: string): Record<string, string> {
  const pairs = text.split(",").filter((pair) => pair.trim() !== "");
  return Object.fromEntries(
    pairs.map((pair) => {
      const [label = "", ...value] = pair.split("=");
      return [label.trim(), value.join("=").trim()];
    }),
  );
}

/** "team=payments", in label order. */
export function formatLabels(labels: Readonly<Record<string, string>>): string[] {
  return Object.entries(labels)
    .map(([label, value]) => `${label}=${value}`)
    .sort();
}

/** The key's display name. */
export function nameKey({ name, alias, keyId }: KeyRecord): string {
  return name ?? (alias || shortenId(keyId));
}

/** The status, or a note that the stored key was modified outside the service. */
export function nameStatus({ status, damaged }: KeyRecord): string {
  return damaged ? "DAMAGED" : status;
}

/** "version 2, primary", or nothing for a key without a name. */
export function describeVersion({ version, isPrimary }: KeyRecord): string {
  if (version === undefined) return "";
  return isPrimary ? `version ${version}, primary` : `version ${version}`;
}

/** "SIGN, GENERATED", preceded by "draft 19" for a composite: the draft that the key follows. */
export function describeKind({ draft, usage, origin }: KeyRecord): string {
  return [...(draft === undefined ? [] : [`draft ${draft.split("-").at(-1)}`]), usage, origin].join(", ");
}

/** The alias, or nothing if the server derived it from the ID of this key or an earlier one. */
export function describeAlias(alias: string): string {
  return /^key-[0-9a-f-]{36}(-rotated)*$/.test(alias) ? "" : alias;
}
