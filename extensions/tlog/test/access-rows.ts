/** This extension's rows of the access table test. */
import { createClient } from "@connectrpc/connect";
import { LogService } from "#gen/tlog/log_service_pb.ts";
import type { Person } from "../../../test/access/access-server.ts";
import { type Row, row } from "../../../test/access/rpc-rows.ts";
import { present } from "../../../test/services/answers.ts";
import { cosignNote } from "./witness.ts";

const { method } = LogService;
const log = "blockchain";

/**
 * Publishes the first block.
 *
 * @returns its checkpoint's note
 */
async function publish({ transport }: Person): Promise<Uint8Array> {
  const { checkpoint } = await createClient(LogService, transport).getCheckpoint({ log });
  return present(checkpoint).data;
}

export const rows: readonly Row[] = [
  row(method.listLogs, () => ({})),
  row(method.getCheckpoint, () => ({ log })),
  row(method.getTile, async ({ owner }) => {
    await publish(owner);
    return { log, path: "0/000.p/1" };
  }),
  row(method.getInclusionProof, () => ({ log, leafIndex: 0 })),
  row(method.getConsistencyProof, () => ({ log, fromSize: 1 })),
  row(method.addCosignature, async ({ owner }) => ({ log, note: await cosignNote(await publish(owner)) })),
  row(method.listCosignatures, () => ({ log })),
  row(method.listLogEntries, () => ({ log: "audit" })),
];
