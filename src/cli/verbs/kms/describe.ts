/** Describes server-held keys for people. */
import type { KeyRecord } from "#gen/kms/key_pb.ts";
import type { ExportedKey } from "#gen/kms/kms_service_pb.ts";
import { facts, table, time } from "../../output/output.ts";

/** Formats the version of a name, "team/release/2"; "" for a key without a name. */
export function nameVersion({ name, version }: Pick<KeyRecord | ExportedKey, "name" | "version">): string {
  return name ? `${name}/${version}` : "";
}

/** Formats the version of a name, with a star for the primary version: "team/release/2 *". */
export function markVersion(key: KeyRecord): string {
  return [nameVersion(key), ...(key.isPrimary ? ["*"] : [])].join(" ");
}

/** Returns the alias that the caller chose; "" for none. */
export function chosenAlias({ alias, keyId }: KeyRecord): string {
  return alias === keyId ? "" : alias;
}

/** Formats an algorithm, with the number of the draft that it follows: "MLDSA65-Ed25519-SHA512 (draft 19)". */
export function describeAlgorithm({
  algorithm,
  draft,
}: Pick<KeyRecord | ExportedKey, "algorithm" | "draft">): string {
  return draft === undefined ? algorithm : `${algorithm} (draft ${draft.split("-").at(-1)})`;
}

/** Describes a key, without its public key. */
export function describeKey(key: KeyRecord | undefined): string {
  if (key === undefined) return "";
  return facts({
    key: key.keyId,
    name: key.name && `${nameVersion(key)}${key.isPrimary ? " (primary)" : ""}`,
    alias: chosenAlias(key),
    algorithm: key.algorithm,
    draft: key.draft,
    usage: key.usage,
    status: key.status,
    labels: describeLabels(key.labels),
    origin: key.origin,
    created: time(key.createdAt),
    "replaced by": key.replacedBy,
    "rotated every": describePeriod(key.rotationPeriodSeconds),
    "next rotation": time(key.nextRotationAt),
    "destroyed at": time(key.destroyAt),
  });
}

export function describeVersions(versions: readonly KeyRecord[]): string {
  const rows = versions.map((key) => [
    ...[markVersion(key), key.keyId, key.damaged ? "DAMAGED" : key.status, time(key.createdAt)],
  ]);
  return table(["VERSION", "KEY", "STATUS", "CREATED"], rows);
}

function describeLabels(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(", ");
}

function describePeriod(seconds: number | undefined): string | undefined {
  if (seconds === undefined) return undefined;
  return seconds % 86_400 === 0 ? `${seconds / 86_400}d` : `${seconds}s`;
}
