/** `qsp kms audit` and `verify-audit`. */
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import { KmsService, type VerifyAuditLogResponse } from "#gen/kms/kms_service_pb.ts";
import { printList } from "../call-verbs.ts";
import { oneOf } from "../client.ts";
import { createProgress } from "../count-progress.ts";
import { afterOption, entryFilterOptions, readEntryFilter, refuseAfter, watchEntries } from "../entry-log.ts";
import { exitCodes } from "../exit-codes.ts";
import { facts } from "../output.ts";
import { readTime } from "../time-options.ts";
import type { Verb, VerbInput } from "../verb.ts";

const { method } = KmsService;

/** The operations that entries record. */
const operations = [
  ...["CREATE", "IMPORT", "SIGN", "VERIFY", "ENCAPSULATE", "DECAPSULATE", "ROTATE", "DISABLE", "ENABLE"],
  ...["SCHEDULE_DESTROY", "RESTORE", "DESTROY", "CREATE_IMPORT", "CREATE_GRANT", "REVOKE_GRANT"],
  ...["CREATE_NAME", "UPDATE_NAME", "REFUSALS"],
] as const;

export const kmsAuditVerbs: readonly Verb[] = [
  {
    name: "kms audit",
    operands: ["[KEY]"],
    options: {
      ...entryFilterOptions(operations, "this user"),
      follow: { meaning: "Same as --watch" },
      ...afterOption,
    },
    meaning:
      "Lists the uses of keys, oldest first, including refused attempts. name/NAME selects the entries of all versions.\n" +
      "--json also shows the request IDs and the hashes of the entries.",
    example: 'qsp kms audit "$KEY"',
    run(input) {
      const isWatch = input.options.flag("watch") || input.options.flag("follow");
      if (!isWatch) refuseAfter(input.options);
      const filter = readFilter(input);
      return isWatch
        ? watchEntries(method.watchAuditLog, input, filter, ({ entry }) => entry, columns)
        : printList(method.getAuditLog, input, filter, {
            items: ({ auditLog }) => auditLog,
            none: "There are no entries.",
            columns,
          });
    },
  },
  {
    name: "kms verify-audit",
    operands: [],
    options: {},
    meaning:
      "Has the server verify its whole audit log: hashes, links and signed checkpoints. Shows progress.",
    example: "qsp kms verify-audit",
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
  },
];

/** The stream has no deadline, so the length of the log does not matter. */
async function verifyWhole(server: VerbInput["server"]): Promise<VerifyAuditLogResponse> {
  const progress = createProgress("entries verified");
  try {
    for await (const { entriesVerified, entriesTotal, result } of server.stream(
      method.watchAuditVerification,
      oneOf({}),
    )) {
      if (result !== undefined) return result;
      progress.show(entriesVerified, entriesTotal);
    }
  } finally {
    progress.end();
  }
  throw new Error("the server ended the verification without a result");
}

function readFilter({ operands: [keyId = ""], options }: VerbInput) {
  const [from, to] = [readTime(options, "from", -1), readTime(options, "to", -1)];
  return { keyId, ...readEntryFilter(options), ...(from && { from }), ...(to && { to }) };
}

const columns = {
  ENTRY: "sequence",
  TIME: "timestamp",
  OPERATION: "operation",
  OUTCOME: "outcome",
  USER: "user",
  ADDRESS: ({ clientAddress }: AuditEntry) => clientAddress || "-",
  KEY: "keyId",
  DETAILS: "details",
} as const;
