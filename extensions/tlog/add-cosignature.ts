import { refuse, refuseField } from "../../src/errors.ts";
import type { Store } from "../../src/store/store.ts";
import { parseCheckpoint } from "./checkpoint.ts";
import type { Cosignature } from "./cosignature-store.ts";
import { findBySize } from "./get-checkpoint.ts";
import type { LogServiceDeps, ServedLog } from "./logs.ts";
import { type Note, NoteError, parseNote } from "./note.ts";
import { verifyNote } from "./verify-note.ts";

/** Maximum seconds that a witness's clock may be ahead. */
const maxAheadSeconds = 300;

/** A request's cosignatures and the checkpoint that they are for. */
export interface AddedCosignatures {
  readonly size: number;
  readonly cosignatures: readonly Cosignature[];
}

/**
 * Adds cosignatures to a checkpoint that this log has published. Nothing is verified until the text matches
 * that checkpoint, and then at most one signature per trusted witness.
 *
 * @throws NOTE_INVALID, CHECKPOINT_NOT_FOUND, WITNESS_UNKNOWN, COSIGNATURE_INVALID
 */
export async function addCosignature(
  deps: LogServiceDeps,
  log: ServedLog,
  bytes: Uint8Array,
): Promise<AddedCosignatures> {
  const { note, size } = readCosigned(log, bytes);
  const requirePublished = async (db?: Store["reader"]): Promise<void> => {
    if ((await findBySize(log, size, db)).note.text === note.text) return;
    throw refuse("CHECKPOINT_NOT_FOUND", `the log ${log.name} has a different checkpoint of size ${size}`, {
      log: log.name,
    });
  };
  await requirePublished();
  const cosignatures = await verifyCosignatures(deps, note);
  await deps.store.write(async ({ db }) => {
    // In the meantime, it may have been removed, or a server with a different origin may have signed it again.
    await requirePublished(db);
    for (const one of cosignatures) await log.cosignatures.add(db, size, one);
  });
  for (const _ of cosignatures) deps.metrics.logCosigned(log.name);
  return { size, cosignatures };
}

function readCosigned(log: ServedLog, bytes: Uint8Array): { note: Note; size: number } {
  try {
    const note = parseNote(bytes);
    const { origin, size } = parseCheckpoint(note.text);
    if (origin === log.origin) return { note, size };
    throw new NoteError(`belongs to the log ${origin}, not ${log.origin}`);
  } catch (error) {
    if (!(error instanceof NoteError)) throw error;
    throw refuseField("note", error.message, "NOTE_INVALID");
  }
}

async function verifyCosignatures(
  { provider, witnesses, now }: LogServiceDeps,
  note: Note,
): Promise<Cosignature[]> {
  const latest = now().getTime() / 1000 + maxAheadSeconds;
  const verified: Cosignature[] = [];
  for (const key of witnesses) {
    const found = await verifyNote(provider, note, key);
    if (found === undefined) continue;
    if (found === "invalid" || found.timestamp === undefined)
      throw refuse("COSIGNATURE_INVALID", `the cosignature of ${key.name} does not verify`, {
        witness: key.name,
      });
    const { timestamp } = found;
    // tlog-witness: a checkpoint's cosignature has a time.
    if (timestamp === 0 || timestamp > latest)
      throw refuse(
        "COSIGNATURE_INVALID",
        `the cosignature of ${key.name} states ${timestamp === 0 ? "no time" : "a time more than five minutes in the future"}`,
        { witness: key.name },
      );
    verified.push({ ...found, timestamp });
  }
  if (verified.length > 0) return verified;
  throw refuse("WITNESS_UNKNOWN", "the note has no signature from a witness that this server trusts");
}
