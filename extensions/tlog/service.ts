/** tlog.LogService: unpack, call, pack. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { CosignatureSchema, LogService } from "#gen/tlog/log_service_pb.ts";
import { addCosignature } from "./add-cosignature.ts";
import type { Cosignature } from "./cosignature-store.ts";
import { findBySize, findCheckpoint, writeNote } from "./get-checkpoint.ts";
import { getConsistencyProof, getInclusionProof } from "./get-proofs.ts";
import { getTile } from "./get-tile.ts";
import { listLogEntries } from "./list-entries.ts";
import { findLog, type LogServiceDeps } from "./logs.ts";
import { formatSignatureLine } from "./note.ts";
import { formatVerifierKey } from "./verifier-keys.ts";

export function logService(deps: LogServiceDeps): ServiceImpl<typeof LogService> {
  const witnessKeys = deps.witnesses.map(formatVerifierKey);
  const logs = deps.logs.map(({ name, origin, keys }) => {
    return { log: name, origin, verifierKeys: keys.map(formatVerifierKey), witnessKeys };
  });
  return {
    listLogs: () => ({ logs }),
    getCheckpoint: async ({ log: name, witnesses }, context) => {
      const log = findLog(deps, name);
      const note = await writeNote(log, await findCheckpoint(log, witnesses));
      // tlog-tiles: cache for at most a few seconds.
      cacheFor(context, "no-cache");
      return { checkpoint: { contentType: "text/plain; charset=utf-8", data: Buffer.from(note) } };
    },
    getTile: async ({ log, path }, context) => {
      const data = await getTile(findLog(deps, log), path);
      cacheFor(context, "public, max-age=31536000, immutable");
      return { tile: { contentType: "application/octet-stream", data } };
    },
    getInclusionProof: ({ log, leafIndex, treeSize }) =>
      getInclusionProof(findLog(deps, log), { index: leafIndex, size: treeSize }),
    getConsistencyProof: ({ log, fromSize, toSize }) =>
      getConsistencyProof(findLog(deps, log), { from: fromSize, to: toSize }),
    addCosignature: async ({ log, note }) => {
      const { size, cosignatures } = await addCosignature(deps, findLog(deps, log), note);
      return { treeSize: size, cosignatures: cosignatures.map(packCosignature) };
    },
    listCosignatures: async ({ log: name, treeSize }) => {
      const log = findLog(deps, name);
      const { size } = treeSize === undefined ? await log.readCheckpoint() : await findBySize(log, treeSize);
      return { treeSize: size, cosignatures: (await log.cosignatures.list(size)).map(packCosignature) };
    },
    listLogEntries: ({ log, pageSize, pageToken }) =>
      listLogEntries(deps, findLog(deps, log), { pageSize, pageToken }),
  };
}

function cacheFor({ responseHeader }: HandlerContext, value: string): void {
  responseHeader.set("cache-control", value);
}

function packCosignature(cosignature: Cosignature): MessageInitShape<typeof CosignatureSchema> {
  return {
    witnessKey: formatVerifierKey(cosignature.key),
    signedAt: timestampFromMs(cosignature.timestamp * 1000),
    signatureLine: formatSignatureLine(cosignature).trimEnd(),
  };
}
