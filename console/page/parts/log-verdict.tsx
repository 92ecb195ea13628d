/** What the server found in the audit log, and whether it signed a checkpoint of it. */
import type { VerifyAuditLogResponse } from "#gen/kms/kms_service_pb.ts";
import { verifyHere } from "../algorithms.ts";
import { reportBrowser, reportServer } from "../checks.ts";
import { formatNumber, toUtf8 } from "../values.ts";
import { checks, code, facts } from "./show.tsx";

export interface LogVerdict
  extends Pick<VerifyAuditLogResponse, "valid" | "entries" | "head" | "checkpoint"> {
  /** Whether the checkpoint's signature is valid, as the browser finds. */
  readonly isCheckpointSigned: boolean;
}

/** Verifies the signature of the checkpoint's statement. */
export async function checkLog({
  valid,
  entries,
  head,
  checkpoint,
}: VerifyAuditLogResponse): Promise<LogVerdict> {
  const isCheckpointSigned =
    checkpoint !== undefined &&
    (await verifyHere("ML-DSA-65", checkpoint.signature, toUtf8(checkpoint.statement), checkpoint.publicKey));
  return { valid, entries, head, checkpoint, isCheckpointSigned };
}

export function sayLog({ valid, entries }: LogVerdict): string {
  return `The server read ${formatNumber(entries)} entries and finds the log ${valid ? "unchanged" : "changed"}.`;
}

export function showLog({ valid, head, checkpoint, isCheckpointSigned }: LogVerdict) {
  return [
    facts({
      "Hash of the newest entry": code(head),
      "Signed checkpoint": checkpoint
        ? `covers the log up to entry ${formatNumber(checkpoint.sequence)}`
        : "none yet",
    }),
    checks(
      reportServer("every hash and every link", valid),
      checkpoint ? reportBrowser("the checkpoint's signature", isCheckpointSigned) : [],
    ),
  ];
}
