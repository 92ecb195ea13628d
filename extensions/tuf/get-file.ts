import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import type { GetFileRequest, GetFileResponseSchema } from "#gen/tuf/repository_service_pb.ts";
import { refuse } from "../../src/errors.ts";
import { openContent } from "../../src/http/byte-ranges.ts";
import { authenticate } from "../../src/identity/authenticate.ts";
import type { ModuleDeps } from "../../src/services/service-module.ts";
import type { RequireReader, TufDeps } from "./deps.ts";
import { findFile } from "./find-file.ts";
import { reasons } from "./reasons.ts";

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
 * @throws FILE_NOT_FOUND, RANGE_NOT_SATISFIABLE, and TOKEN_… reasons if files are private
 */
export async function* getFile(
  deps: TufDeps,
  { repository, path }: GetFileRequest,
  context: HandlerContext,
): AsyncGenerator<MessageInitShape<typeof GetFileResponseSchema>> {
  const { contents, requireReader } = deps;
  await requireReader?.(context.requestHeader.get("authorization"));
  const file = await findFile(deps, repository, path);
  if (file === undefined) throw fileNotFound(repository, path);
  const isMetadata = file.kind === "metadata";
  // A path with a hash or a version always names the same bytes.
  const policy = isMetadata && !file.isVersioned ? "no-cache" : immutable;
  const part = openContent(context, {
    length: isMetadata ? file.content.length : file.length,
    tag: `"${file.sha256}"`,
    cacheControl: `${requireReader ? "private" : "public"}, ${policy}`,
  });
  const contentType = "application/octet-stream";
  const bytes = isMetadata
    ? cut(file.content.subarray(part.from, part.to))
    : contents.read(file.contentId, part);
  for await (const data of bytes) yield { content: { contentType, data } };
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
