/** `qsp kms audit` and `verify-audit`. */
import { KmsService, type VerifyAuditLogResponse } from "#gen/kms/kms_service_pb.ts";
import { listAccepted } from "../../../calls/accepted-values.ts";
import { oneOf } from "../../connection/api-client.ts";
import { exitCodes } from "../../exit-codes.ts";
import { entryLogVerb } from "../../log-verbs.ts";
import { withCount } from "../../output/count-progress.ts";
import { facts } from "../../output/output.ts";
import { declareVerb, type Verb, type VerbInput } from "../../verb.ts";

const { method } = KmsService;

export const kmsAuditVerbs: readonly Verb[] = [
  entryLogVerb(method.getAuditLog, method.watchAuditLog, {
    line: "kms audit [KEY]",
    meaning:
      "Lists key uses, oldest first, including refused attempts. name/NAME selects the entries of all versions.\n" +
      "--json also shows the request IDs and the hashes of the entries.",
    example: 'qsp kms audit "$KEY"',
    options: { follow: { meaning: "Same as --watch" } },
    operations: listAccepted(method.getAuditLog.input.field.operation),
    user: "this user",
    watchesTimes: true,
    ask: (keyId, filter) => ({ keyId, ...filter }),
    items: ({ auditLog }) => auditLog,
    entryOf: ({ entry }) => entry,
    columns: {
      ENTRY: "sequence",
      TIME: "timestamp",
      OPERATION: "operation",
      OUTCOME: "outcome",
      USER: "user",
      ADDRESS: ({ clientAddress }) => clientAddress || "-",
      KEY: "keyId",
      DETAILS: "details",
    },
  }),
  declareVerb({
    line: "kms verify-audit",
    meaning:
      "Has the server verify its whole audit log: hashes, links and signed checkpoints. Shows progress.",
    async run({ output, server }) {
      const answer = await verifyWhole(server);
      const { valid, entries, head, firstBrokenSequence, reason } = answer;
      output.answer(method.verifyAuditLog.output, answer, () =>
        valid
          ? `The audit log is valid.\n${facts({ entries: String(entries), head })}`
          : `The audit log is broken at entry ${firstBrokenSequence}: ${reason}.`,
      );
      return valid ? exitCodes.done : exitCodes.no;
    },
  }),
];

/** Verifies over a stream: it has no deadline, so a log of any length can finish. */
function verifyWhole(server: VerbInput["server"]): Promise<VerifyAuditLogResponse> {
  return withCount("entries verified", async (onProgress) => {
    const answers = server.stream(method.watchAuditVerification, oneOf({}));
    for await (const { entriesVerified, entriesTotal, result } of answers) {
      if (result !== undefined) return result;
      onProgress(entriesVerified, entriesTotal);
    }
    throw new Error("the server ended the verification without a result");
  });
}
