import type { AuditVerification, SignedCheckpoint } from "../../audit/verification.ts";
import { ConfigError } from "../../config.ts";
import { loadLogVerification } from "../../services/registry.ts";
import { readText } from "../files/read.ts";
import { counted } from "../output/output.ts";
import { withCount } from "../output/progress.ts";
import { type StoreVerb, verdict } from "./store-verb.ts";
import { withStore } from "./with-store.ts";

/** Verifies a store's audit log; works while the server runs. */
export const auditVerify: StoreVerb = {
  line: "audit verify [CHECKPOINT-FILE]",
  operandFiles: { "CHECKPOINT-FILE": "reads" },
  meaning:
    "Verifies the audit log, optionally against a checkpoint that you stored elsewhere (the JSON of VerifyAuditLog).",
  async run(input) {
    const [file] = input.operands;
    const outside = file === undefined ? undefined : readCheckpoint(file);
    const { verifyAudit } = await loadLogVerification(await input.loadPackages());
    const found = await withStore(input, "existing", (store, provider) =>
      withCount("entries verified", (onProgress) =>
        verifyAudit(store, provider, { outside, onProgress, signsEnd: false }),
      ),
    );
    return verdict(found.valid, describeVerification("audit log", found, outside));
  },
};

/**
 * Describes the result of a verification in one sentence.
 *
 * @param log names the log
 * @param outside the checkpoint that the user gave
 */
export function describeVerification(
  log: string,
  { valid, entries, head, firstBrokenSequence, reason, checkpoint }: AuditVerification,
  outside: SignedCheckpoint | undefined,
): string {
  const vouched =
    checkpoint === undefined
      ? "no signed checkpoint matches it"
      : `signed checkpoint at ${describeCheckpoint(checkpoint)}`;
  const compared = outside ? `; it matches your checkpoint at ${describeCheckpoint(outside)}` : "";
  const countedEntries = counted(entries, "entry", "entries");
  return valid
    ? `The ${log} is valid: ${countedEntries}, head ${head}; ${vouched}${compared}.`
    : `The ${log} is broken at entry ${firstBrokenSequence}: ${reason}. It has ${countedEntries}; ${vouched}.`;
}

function describeCheckpoint({ sequence, signedAt }: SignedCheckpoint): string {
  return `entry ${sequence}, ${signedAt.toISOString()}`;
}

/** Reads a checkpoint from a REST response of VerifyAuditLog: the whole response, or only its checkpoint. */
export function readCheckpoint(path: string): SignedCheckpoint {
  const given = readJson(path);
  const checkpoint = isRecord(given) && isRecord(given.checkpoint) ? given.checkpoint : given;
  if (isRecord(checkpoint)) {
    const { sequence, entryHash, signedAt, signature } = checkpoint;
    const date = new Date(String(signedAt));
    const isWhole =
      Number.isSafeInteger(sequence) && typeof entryHash === "string" && !Number.isNaN(date.getTime());
    if (isWhole && typeof signature === "string")
      return {
        sequence: Number(sequence),
        entryHash,
        signedAt: date,
        signature: Buffer.from(signature, "base64"),
      };
  }
  throw new ConfigError(
    `${path} does not contain a checkpoint; expected sequence, entryHash, signedAt and signature`,
  );
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(readText(path));
  } catch (error) {
    throw new ConfigError(
      `${path} cannot be read as JSON: ${error instanceof Error ? error.message : error}`,
    );
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
