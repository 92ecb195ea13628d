/** Verbs for server logs: `qsp kms audit` and `verify-audit`, `qsp identity log` and `verify-log`. */
import { KmsService, type VerifyAuditLogResponse } from "#gen/kms/kms_service_pb.ts";
import { IdentityLogService } from "#gen/pqc/identity_log_service_pb.ts";
import { answerVerb, unaryVerb } from "../call-verbs.ts";
import { oneOf } from "../connection/api-client.ts";
import { entryLogVerb } from "../log-verbs.ts";
import { facts } from "../output/output.ts";
import { withCount } from "../output/progress.ts";
import type { Verb, VerbInput } from "../verb.ts";

const kms = KmsService.method;
const identity = IdentityLogService.method;

export const kmsAuditVerbs: readonly Verb[] = [
  entryLogVerb(kms.getAuditLog, kms.watchAuditLog, {
    line: "kms audit [KEY]",
    meaning:
      "Lists key uses, oldest first, including refused attempts. name/NAME selects the entries of all versions.\n" +
      "--json also shows the request IDs and the hashes of the entries.",
    example: 'qsp kms audit "$KEY"',
    options: { follow: { meaning: "Same as --watch" } },
    user: "this user",
    ask: (keyId, filter) => ({ keyId, ...filter }),
    items: ({ auditLog }) => auditLog,
    entryOf: ({ entry }) => entry,
    columns: {
      ENTRY: "sequence",
      TIME: "timestamp",
      OPERATION: "operation",
      OUTCOME: ({ outcome, damaged }) => (damaged ? "DAMAGED" : outcome),
      USER: "user",
      ADDRESS: ({ clientAddress }) => clientAddress || "-",
      KEY: "keyId",
      DETAILS: "details",
    },
  }),
  answerVerb(kms.verifyAuditLog.output, verifyWhole, {
    line: "kms verify-audit",
    meaning:
      "Has the server verify its whole audit log: hashes, links and signed checkpoints. Shows progress.",
    isYes: ({ valid }) => valid,
    say: (verdict) => describeVerdict("audit log", verdict),
  }),
];

export const identityVerbs: readonly Verb[] = [
  entryLogVerb(identity.getIdentityLog, identity.watchIdentityLog, {
    line: "identity log [NAME]",
    meaning:
      "Lists logins and changes to users, clients and issuer keys, oldest first; with a name, only entries for that name.\n" +
      "Requires the role auditor or admin. On the store's machine, audit identities does the same without a server.",
    example: "qsp identity log ada",
    user: "what this user did",
    ask: (subject, filter) => ({ subject, ...filter }),
    items: ({ entries }) => entries,
    entryOf: ({ entry }) => entry,
    columns: {
      ENTRY: "sequence",
      TIME: "timestamp",
      OPERATION: "operation",
      OUTCOME: ({ outcome, damaged }) => (damaged ? "DAMAGED" : outcome),
      SUBJECT: ({ subject }) => subject || "-",
      BY: ({ user }) => user || "-",
      ADDRESS: ({ clientAddress }) => clientAddress || "-",
      DETAILS: "details",
    },
  }),
  unaryVerb(identity.verifyIdentityLog, {
    line: "identity verify-log",
    meaning: "Has the server verify its whole identity log: hashes, links and signed checkpoints.",
    isYes: ({ valid }) => valid,
    say: (verdict) => describeVerdict("identity log", verdict),
  }),
];

type Verdict = Pick<VerifyAuditLogResponse, "valid" | "entries" | "head" | "firstBrokenSequence" | "reason">;

function describeVerdict(log: string, { valid, entries, head, firstBrokenSequence, reason }: Verdict) {
  return valid
    ? `The ${log} is valid.\n${facts({ entries: String(entries), head })}`
    : `The ${log} is broken at entry ${firstBrokenSequence}: ${reason}.`;
}

/** Verifies over a stream: it has no deadline, so a log of any length can finish. */
function verifyWhole({ server }: VerbInput): Promise<VerifyAuditLogResponse> {
  return withCount("entries verified", async (onProgress) => {
    for await (const { entriesVerified, entriesTotal, result } of server.stream(
      kms.watchAuditVerification,
      oneOf({}),
    )) {
      if (result !== undefined) return result;
      onProgress(entriesVerified, entriesTotal);
    }
    throw new Error("the server ended the verification without a result");
  });
}
