/** Lists, finds and creates keys. */
import type { KeyRecord } from "#gen/kms/key_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { kemNames, mlDsaNames, slhDsaNames } from "../../../../src/crypto/algorithms.ts";
import type { Caller } from "../../caller.ts";
import { shortenId } from "../key-id.ts";

const { createKey, getKey, listKeys } = KmsService.method;

export const statuses = ["ACTIVE", "ROTATED", "DISABLED", "DESTROY_SCHEDULED", "DESTROYED"];
export const usages = ["SIGN", "KEM"];
export const algorithms = [...mlDsaNames, ...slhDsaNames, ...kemNames];

/** Which keys the server lists; an empty text selects all. */
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

/** How many keys the page loads at a time. */
export const pageSize = 50;
const maxPageSize = 1000;

/** Loads keys up to a count. @param known the keys that are loaded already */
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

/** Selects the keys that have each word of a text in the name, alias, ID or labels, in upper or lower case. */
export function searchKeys(keys: readonly KeyRecord[], text: string): readonly KeyRecord[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return keys.filter(({ name = "", alias, keyId, labels }) => {
    const searched = [name, alias, keyId, ...formatLabels(labels)].join("\n").toLowerCase();
    return words.every((word) => searched.includes(word));
  });
}

/** A key, with what the page shows of its name. */
export interface KeyDetails {
  readonly key: KeyRecord;
  /** The versions of its name, oldest first; none if it has no name, or if another user owns the name. */
  readonly versions: readonly KeyRecord[];
  /** Stands for the name in calls, or for the key if there are no versions: "name/release". */
  readonly handle: string;
}

export async function loadDetails({ call }: Caller, keyId: string): Promise<KeyDetails> {
  const { result: key } = await call(getKey, { keyId });
  if (key === undefined) throw new Error("the server sent no key");
  const alone = { key, versions: [], handle: keyId };
  if (key.name === undefined) return alone;
  const handle = `name/${key.name}`;
  const { versions } = await call(getKey, { keyId: handle }).catch(() => ({ versions: [] }));
  // Two users may have the same name. An administrator sees keys of both, but the handle stands for one of them.
  return versions.some((version) => version.keyId === keyId) ? { key, versions, handle } : alone;
}

/** The fields of a new key, as the reader types them. */
export interface NewKey {
  readonly name: string;
  readonly alias: string;
  readonly algorithm: string;
  readonly labels: string;
  /** Whole days between automatic rotations; empty for none. */
  readonly rotationDays: string;
}

const secondsPerDay = 86_400;

export async function createNewKey({ call }: Caller, fields: NewKey): Promise<KeyRecord> {
  const { name, alias, algorithm, rotationDays } = fields;
  const { result } = await call(createKey, {
    ...{ name, alias, algorithm, labels: parseLabels(fields.labels) },
    ...(rotationDays !== "" && { rotationPeriodSeconds: Math.round(Number(rotationDays) * secondsPerDay) }),
  });
  if (result === undefined) throw new Error("the server sent no key");
  return result;
}

/** @param text pairs with commas between them: "team=payments, stage=production" */
export function parseLabels(text: string): Record<string, string> {
  const pairs = text.split(",").filter((pair) => pair.trim() !== "");
  return Object.fromEntries(
    pairs.map((pair) => {
      const [label = "", ...value] = pair.split("=");
      return [label.trim(), value.join("=").trim()];
    }),
  );
}

/** "team=payments", in the order of the labels. */
export function formatLabels(labels: Readonly<Record<string, string>>): string[] {
  return Object.entries(labels)
    .map(([label, value]) => `${label}=${value}`)
    .sort();
}

/** The name of the key for readers. */
export function nameKey({ name, alias, keyId }: KeyRecord): string {
  return name ?? (alias || shortenId(keyId));
}

/** The status, or that the stored key was changed outside the service. */
export function nameStatus({ status, damaged }: KeyRecord): string {
  return damaged ? "DAMAGED" : status;
}

/** "version 2, primary", or nothing for a key without a name. */
export function describeVersion({ version, isPrimary }: KeyRecord): string {
  if (version === undefined) return "";
  return isPrimary ? `version ${version}, primary` : `version ${version}`;
}

/** The alias, or nothing if the server made it from the ID of this key or of one before it. */
export function describeAlias(alias: string): string {
  return /^key-[0-9a-f-]{36}(-rotated)*$/.test(alias) ? "" : alias;
}
