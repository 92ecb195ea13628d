/** Record → message. */
import type { Message, MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { RepositorySchema, TargetSchema } from "#gen/tuf/repository_service_pb.ts";
import type { Repository, TargetRecord } from "./tables.ts";

export type RepositoryMessage = Exclude<MessageInitShape<typeof RepositorySchema>, Message>;

/** Packs what the record of a repository says. */
export function packRepository(record: Repository): RepositoryMessage {
  const { repository, walletId, createdAt, rootVersion } = record;
  const { rootSeconds, targetsSeconds, snapshotSeconds, timestampSeconds } = record;
  return {
    repository,
    walletId,
    rootVersion,
    validity: { rootSeconds, targetsSeconds, snapshotSeconds, timestampSeconds },
    createdAt: timestampFromDate(createdAt),
  };
}

/** @param role the role that provides it, or that will */
export function packTarget(
  { publishedSequence }: Repository,
  target: TargetRecord,
  role: string,
): MessageInitShape<typeof TargetSchema> {
  const { path, length, sha256, sha512, version, deviceTypes, uploadedAt } = target;
  const isDraft = target.addedSequence > publishedSequence;
  return {
    path,
    length,
    sha256,
    sha512,
    version,
    deviceTypes: [...deviceTypes],
    targetStatus: isDraft ? "DRAFT" : target.removedSequence === undefined ? "PUBLISHED" : "REMOVING",
    role,
    uploadedAt: timestampFromDate(uploadedAt),
  };
}
