/** Finds and streams the files that clients read. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import type { GetFileRequest, GetFileResponseSchema } from "#gen/tuf/repository_service_pb.ts";
import { refuse } from "../../src/errors.ts";
import { type ByteRange, openContent } from "../../src/http/byte-ranges.ts";
import { authenticate } from "../../src/identity/authenticate.ts";
import type { ModuleDeps } from "../../src/services/service-module.ts";
import type { RequireReader, TufDeps } from "./deps.ts";
import { toHex } from "./metadata.ts";
import { reasons } from "./reasons.ts";

/** A file that clients read. */
interface PublishedFile {
  readonly length: number;
  readonly sha256: Uint8Array;
  /** Whether its path, with a version or a hash, always names the same bytes. */
  readonly isImmutable: boolean;
  read(part: ByteRange): Iterable<Uint8Array> | AsyncIterable<Uint8Array>;
}

/** Bytes of a part. */
const partBytes = 64 * 1024;

const readScope = "tuf.read";

/** A year, as long as RFC 9111 expects a cache to keep anything. */
const immutable = "max-age=31536000, immutable";

/** Admits users, clients with the scope tuf.read, and devices, to any repository. */
export function createReaderCheck({
  issuer,
  accounts,
  issuerUrl,
}: Pick<ModuleDeps, "issuer" | "accounts" | "issuerUrl">): RequireReader {
  return async (authorization) => {
    const { scopes } = await authenticate(issuer, accounts, authorization, issuerUrl);
    if (scopes === undefined || scopes.includes(readScope)) return;
    const message = `GetFile needs the scope ${readScope}, and the token has ${scopes.join(" ") || "none"}`;
    throw refuse("SCOPE_MISSING", message, { scope: readScope });
  };
}

/**
 * Streams a published file, or the part that the caller asks for.
 *
 * @throws FILE_NOT_FOUND, RANGE_NOT_SATISFIABLE, RECORD_DAMAGED, and TOKEN_… reasons if files are private
 */
export async function* getFile(
  deps: TufDeps,
  { repository, path }: GetFileRequest,
  context: HandlerContext,
): AsyncGenerator<MessageInitShape<typeof GetFileResponseSchema>> {
  const { requireReader } = deps;
  await requireReader?.(context.requestHeader.get("authorization"));
  const file = await findFile(deps, repository, path);
  if (file === undefined) throw fileNotFound(repository, path);
  const part = openContent(context, {
    length: file.length,
    tag: `"${toHex(file.sha256)}"`,
    cacheControl: `${requireReader ? "private" : "public"}, ${file.isImmutable ? immutable : "no-cache"}`,
  });
  const contentType = "application/octet-stream";
  for await (const data of file.read(part)) yield { content: { contentType, data } };
}

/**
 * Finds a file by its path, such as "metadata/timestamp.json", "metadata/3.snapshot.json" or
 * "targets/esp32/<hash>.firmware.bin", where the hash is the SHA-256 or the SHA-512 of the target.
 *
 * @returns undefined if it is not published
 */
export async function findFile(
  deps: TufDeps,
  repository: string,
  path: string,
): Promise<PublishedFile | undefined> {
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
  const isImmutable = version !== undefined;
  if (isImmutable === (role === "timestamp")) return undefined;
  const file = isImmutable
    ? await tuf.metadata.findIntact({ repository, role, version: Number(version) })
    : (await tuf.readNewest(repository)).get(role);
  if (file === undefined) return undefined;
  const content = await tuf.readContent(file);
  return {
    length: content.length,
    sha256: file.sha256,
    isImmutable,
    read: ({ from, to }) => cut(content.subarray(from, to)),
  };
}

/** A target stays readable after its removal as long as its record exists. */
async function findTarget(
  { store, tuf, contents }: TufDeps,
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
    // An older one with the same content may be removed during the download.
    .orderBy("added_sequence", "desc")
    .limit(1)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const { contentId, length, sha256 } = tuf.targets.requireIntact(tuf.targets.readRow(row));
  return { length, sha256, isImmutable: true, read: (part) => contents.read(contentId, part) };
}

function* cut(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += partBytes) yield bytes.subarray(at, at + partBytes);
}

function fileNotFound(repository: string, path: string): Error {
  return refuse(reasons.fileNotFound, `repository ${repository} has no published file ${path}`, {
    repository,
    path,
  });
}
