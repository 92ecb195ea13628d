/** This extension's rows of the access table test. */
import { createClient } from "@connectrpc/connect";
import { LogService } from "#gen/tlog/log_service_pb.ts";
import type { Person } from "../../../test/access/access-server.ts";
import { type Row, row } from "../../../test/access/rpc-rows.ts";
import { present } from "../../../test/services/answers.ts";
import { formatNote, parseNote } from "../note.ts";
import { witness } from "./witness.ts";

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

/** Cosigns the newest checkpoint. */
async function cosign(owner: Person): Promise<Uint8Array> {
  const note = parseNote(await publish(owner));
  return Buffer.from(formatNote({ ...note, signatures: [await witness.sign(note.text, new Date())] }));
}

/** Returns the path of the first block's tile. */
async function nameTile(owner: Person): Promise<string> {
  await publish(owner);
  return "0/000.p/1";
}

export const rows: readonly Row[] = [
  row(method.listLogs, () => ({})),
  row(method.getCheckpoint, () => ({ log })),
  row(method.getTile, async ({ owner }) => ({ log, path: await nameTile(owner) })),
  row(method.getInclusionProof, () => ({ log, leafIndex: 0 })),
  row(method.getConsistencyProof, () => ({ log, fromSize: 1 })),
  row(method.addCosignature, async ({ owner }) => ({ log, note: await cosign(owner) })),
  row(method.listCosignatures, () => ({ log })),
  row(method.listLogEntries, () => ({ log: "audit" })),
];
