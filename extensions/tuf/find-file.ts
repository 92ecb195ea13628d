/** Finds the files that clients read. */
import { requireIntact } from "../../src/records/table-declaration.ts";
import type { TufDeps } from "./deps.ts";
import { toHex } from "./metadata.ts";
import { targetTable } from "./tables.ts";
import { readPath } from "./targets.ts";

/** A file that clients read. */
export type PublishedFile =
  | {
      readonly kind: "metadata";
      readonly content: Uint8Array;
      /** Hexadecimal. */
      readonly sha256: string;
      /** Whether its path always names this content. */
      readonly isVersioned: boolean;
    }
  | {
      readonly kind: "target";
      readonly contentId: string;
      readonly length: number;
      /** Hexadecimal. */
      readonly sha256: string;
    };

/**
 * Finds a file by its path, such as "metadata/timestamp.json", "metadata/3.snapshot.json" or
 * "targets/esp32/<hash>.firmware.bin", where the hash is the SHA-256 or the SHA-512 of the target.
 *
 * @returns undefined if it is not published
 * @throws RecordDamagedError
 */
export async function findFile(
  deps: TufDeps,
  repository: string,
  given: string,
): Promise<PublishedFile | undefined> {
  const path = readPath(given);
  const [, version, role] = /^metadata\/(?:([1-9]\d{0,8})\.)?([a-z0-9-]{1,64})\.json$/.exec(path) ?? [];
  if (role !== undefined) return findMetadata(deps, repository, role, version);
  const [, folder = "", hash, name] =
    /^targets\/((?:[^/]+\/)*)([0-9a-f]{64}|[0-9a-f]{128})\.([^/]+)$/.exec(path) ?? [];
  return hash === undefined || name === undefined
    ? undefined
    : findTarget(deps, repository, `${folder}${name}`, hash);
}

/** Only the timestamp has a path without a version (TUF specification, section 6.2). */
async function findMetadata(
  { tuf }: TufDeps,
  repository: string,
  role: string,
  version: string | undefined,
): Promise<PublishedFile | undefined> {
  const isVersioned = version !== undefined;
  if (isVersioned === (role === "timestamp")) return undefined;
  const file = isVersioned
    ? await tuf.metadata.findIntact({ repository, role, version: Number(version) })
    : (await tuf.readNewest(repository)).get(role);
  if (file === undefined) return undefined;
  const content = await tuf.readContent(file);
  return { kind: "metadata", content, sha256: toHex(file.sha256), isVersioned };
}

/** A target stays readable after its removal as long as its record exists. */
async function findTarget(
  { store, tuf }: TufDeps,
  repository: string,
  path: string,
  hash: string,
): Promise<PublishedFile | undefined> {
  const found = await tuf.repositories.findIntact({ repository });
  if (found === undefined) return undefined;
  const row = await tuf.targets
    .select(store.reader)
    .where("repository", "=", repository)
    .where("path", "=", path)
    .where(hash.length === 64 ? "sha256" : "sha512", "=", Buffer.from(hash, "hex"))
    .where("added_sequence", "<=", found.publishedSequence)
    .limit(1)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const target = tuf.targets.readRow(row);
  const { contentId, length, sha256 } = requireIntact(target, targetTable.describe(target.record));
  return { kind: "target", contentId, length, sha256: toHex(sha256) };
}
