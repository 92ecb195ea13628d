import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import type { UploadTargetRequest, UploadTargetResponseSchema } from "#gen/tuf/repository_service_pb.ts";
import { refuseField } from "../../src/errors.ts";
import type { CallerInput } from "../../src/identity/principal.ts";
import type { TufDeps } from "./deps.ts";
import { addTarget } from "./targets.ts";

/** What the first message of an upload says about the target. */
type TargetFacts = Pick<UploadTargetRequest, "repository" | "path" | "version" | "deviceTypes">;

/** Reads the length that an upload announces: over REST, the body is the content. 0 if it announces none. */
export function readAnnouncedBytes({
  protocolName,
  requestHeader,
}: Pick<HandlerContext, "protocolName" | "requestHeader">): number {
  const isContent = protocolName === "rest" && !requestHeader.has("content-encoding");
  return isContent ? Number(requestHeader.get("content-length") ?? 0) : 0;
}

/**
 * Stores a target as it arrives, in constant memory, and adds it as a draft.
 *
 * @param announcedBytes length of the content, if known; used to refuse it before it arrives
 * @throws REPOSITORY_NOT_FOUND, FIELD_INVALID, TARGET_TOO_LARGE, QUOTA_EXCEEDED
 */
export async function uploadTarget(
  deps: TufDeps,
  parts: AsyncIterable<UploadTargetRequest>,
  { principal, signal }: Pick<CallerInput, "principal" | "signal">,
  announcedBytes = 0,
): Promise<MessageInitShape<typeof UploadTargetResponseSchema>> {
  const { store, tuf, contents } = deps;
  const iterator = parts[Symbol.asyncIterator]();
  const next = await iterator.next();
  if (next.done === true) throw contentMissing();
  const first: UploadTargetRequest = next.value;
  const { repository, path, version, deviceTypes } = first;
  if (repository === "")
    throw refuseField("repository", "is missing; the first message names the repository");
  if (path === "") throw refuseField("path", "is missing; the first message names the path");
  const { owner } = await tuf.findRepository(repository, { principal });
  contents.requireFit(announcedBytes);
  const content = await contents.write(owner, readContent(first, iterator));
  try {
    // Do not add a target for a caller that has disconnected.
    signal.throwIfAborted();
    if (content.length === 0) throw contentMissing();
    const { added, replaced } = await store.write(async (transaction) => {
      await contents.keep(transaction, owner, content);
      const { contentId, length, sha256, sha512 } = content;
      const target = { path, version, deviceTypes, contentId, length, sha256, sha512 };
      return addTarget(deps, transaction, repository, target);
    });
    await contents.erase(replaced);
    return { target: added };
  } catch (error) {
    await contents.discard(content.contentId);
    throw error;
  }
}

function contentMissing(): Error {
  return refuseField("content", "is missing; send at least 1 byte");
}

async function* readContent(
  first: UploadTargetRequest,
  rest: AsyncIterator<UploadTargetRequest>,
): AsyncGenerator<Uint8Array> {
  for (let part = first; ; ) {
    if (part !== first) requireSame(first, part);
    if (part.content !== undefined) yield part.content.data;
    const next = await rest.next();
    if (next.done === true) return;
    part = next.value;
  }
}

/**
 * Refuses a later message about a different target: a proxy or a log that reads only the first would be deceived.
 *
 * @throws FIELD_INVALID
 */
function requireSame(first: TargetFacts, later: TargetFacts): void {
  for (const field of ["repository", "path", "version"] as const)
    if (later[field] !== "" && later[field] !== first[field]) throw fieldChanged(field);
  const types = later.deviceTypes.join(" ");
  if (types !== "" && types !== first.deviceTypes.join(" ")) throw fieldChanged("deviceTypes");
}

function fieldChanged(field: string): Error {
  return refuseField(field, "differs from the first message; send it once");
}
