/** Lists, searches and creates keys. */
import type { KeyRecord } from "#gen/kms/key_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { compositeNames, slhDsaNames } from "../../../../src/crypto/algorithms.ts";
import { type KeyUsage, listGrantable, operationsOf } from "../../../../src/crypto/key-uses.ts";
import type { Caller } from "../../caller.ts";
import { toFailure } from "../../failure.ts";
import { shortenId } from "../../values.ts";
import { type List, loadList } from "../lists.ts";

const { createKey, getKey, listKeys } = KmsService.method;

export const usages = Object.keys(operationsOf);

/** What keys of each usage do. The first algorithm is the default. */
const kinds: Readonly<Record<KeyUsage, KeyKind>> = {
  SIGN: {
    algorithms: ["ML-DSA-65", "ML-DSA-44", "ML-DSA-87", ...slhDsaNames, ...compositeNames],
    meaning: "Signs messages. Anyone with the public key can verify the signatures.",
    does: "signs",
    rotated: "verifies",
  },
  KEM: {
    algorithms: ["ML-KEM-768", "ML-KEM-512", "ML-KEM-1024", "X-Wing"],
    meaning: "Agrees on a shared secret with anyone who has the public key.",
    does: "encapsulates",
    rotated: "decapsulates",
    loss: "Shared secrets that were encapsulated for it can no longer be recovered.",
  },
  ENCRYPT: {
    algorithms: ["X-Wing", "ML-KEM-768", "ML-KEM-1024"],
    meaning: "Encrypts up to 64 KiB: passwords, tokens, and the keys of larger data.",
    does: "encrypts",
    rotated: "decrypts",
    loss: "All data that is encrypted with it is lost. Re-encrypt the data with another key first.",
  },
};

interface KeyKind {
  readonly algorithms: readonly string[];
  /** What a key of this kind is for. */
  readonly meaning: string;
  readonly does: string;
  /** What a rotated key still does. */
  readonly rotated: string;
  /** What its destruction loses; undefined if nothing. */
  readonly loss?: string;
}

export function findKind(usage: string): KeyKind {
  return kinds[requireUsage(usage)];
}

/** Lists the operations that a grant can allow. A rotated key performs only some of its usage's operations. */
export function listOperations({ usage, status }: Pick<KeyRecord, "usage" | "status">): readonly string[] {
  return listGrantable(requireUsage(usage)).slice(status === "ROTATED" ? 1 : 0);
}

function requireUsage(usage: string): KeyUsage {
  if (Object.hasOwn(kinds, usage)) return usage as KeyUsage;
  throw new Error(`unknown usage ${usage}`);
}

/** Keys to load at a time: the page searches them. */
export const keyPageSize = 500;

export function loadKeys({ call }: Caller, count: number, known?: List<KeyRecord>): Promise<List<KeyRecord>> {
  return loadList(
    (page) => call(listKeys, page),
    ({ keys }) => keys,
    count,
    known,
  );
}

/** A row of the list. */
export interface KeyRow {
  /** The primary version, or the newest one in the list. */
  readonly key: KeyRecord;
  /** The name's versions in the list, oldest first, or a single key. */
  readonly versions: readonly KeyRecord[];
}

/** The handle of all versions of a key's name, or the key's ID. An administrator sees equal names of several users. */
function writeHandle({ owner, name, keyId }: KeyRecord): string {
  if (name === undefined) return keyId;
  return owner === undefined ? `name/${name}` : `user/${owner}/name/${name}`;
}

/** Puts the versions of a name into one row. */
export function groupKeys(keys: readonly KeyRecord[]): readonly KeyRow[] {
  return [...Map.groupBy(keys, writeHandle).values()].flatMap((versions) => {
    const key = versions.find(({ isPrimary }) => isPrimary) ?? versions.at(-1);
    return key === undefined ? [] : [{ key, versions }];
  });
}

/** Selects the keys of which every word of a text is in the name, ID, owner, labels, algorithm, usage or status, ignoring case. */
export function searchKeys(keys: readonly KeyRecord[], text: string): readonly KeyRecord[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return keys.filter((key) => {
    const { name = "", alias, keyId, owner, algorithm, usage, labels } = key;
    const known = [name, alias, keyId, owner, algorithm, usage, nameStatus(key), formatLabels(labels)];
    const searched = known.join("\n").toLowerCase();
    return words.every((word) => searched.includes(word));
  });
}

/** A key with the details of its name that the page shows. */
export interface KeyDetails {
  readonly key: KeyRecord;
  /** The name's versions, oldest first; empty if the key has no name or its owner was removed. */
  readonly versions: readonly KeyRecord[];
  /** The handle of all versions: the name, or the key ID if there are no versions. "name/release". */
  readonly handle: string;
}

export async function loadDetails({ call }: Caller, keyId: string): Promise<KeyDetails> {
  const { result: key } = await call(getKey, { keyId });
  if (key === undefined) throw new Error("the server sent no key");
  const handle = writeHandle(key);
  const alone = { key, versions: [], handle: keyId };
  if (handle === keyId) return alone;
  const { versions } = await call(getKey, { keyId: handle }).catch((thrown) => {
    const failure = toFailure(thrown);
    // The owner was removed, or the name is damaged. After any other failure, versions and grants would be missing.
    if (!["NOT_FOUND", "DATA_LOSS"].includes(failure.code)) throw failure;
    return { versions: [] };
  });
  return versions.length > 0 ? { key, versions, handle } : alone;
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

/** "stage=live, team=payments", in label order. */
export function formatLabels(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([label, value]) => `${label}=${value}`)
    .sort()
    .join(", ");
}

/** The key's display name. */
export function nameKey(key: KeyRecord): string {
  return key.name ?? (describeAlias(key) || shortenId(key.keyId));
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

/** "version 4, primary, and 3 other versions" */
export function describeRow({ key, versions }: KeyRow): string {
  const others = versions.length - 1;
  return [describeVersion(key), others > 0 && `and ${others} other ${others === 1 ? "version" : "versions"}`]
    .filter(Boolean)
    .join(", ");
}

/** "SIGN, GENERATED", preceded by "draft 19" for a composite: the draft that the key follows. */
export function describeKind({ draft, usage, origin }: KeyRecord): string {
  return [...(draft === undefined ? [] : [`draft ${draft.split("-").at(-1)}`]), usage, origin].join(", ");
}

/** The alias, or nothing if it is the key's ID, as for a key without an alias of its own. */
export function describeAlias({ alias, keyId }: Pick<KeyRecord, "alias" | "keyId">): string {
  return alias === keyId ? "" : alias;
}
