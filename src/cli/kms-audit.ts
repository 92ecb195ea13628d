/** `qsp kms audit` and `verify-audit`. */
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import { KmsService, type VerifyAuditLogResponse } from "#gen/kms/kms_service_pb.ts";
import { oneOf } from "./client.ts";
import { createProgress } from "./count-progress.ts";
import { exitCodes, usageError } from "./exit-codes.ts";
import { facts, time } from "./output.ts";
import { printList } from "./print-list.ts";
import { readTime } from "./time-options.ts";
import type { Verb, VerbInput } from "./verb.ts";

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
      operation: { value: "NAME", meaning: "Only entries of this operation", offers: operations },
      outcome: { value: "OUTCOME", meaning: "Only entries with this outcome", offers: ["OK", "REFUSED"] },
      user: { value: "USER", meaning: "Only entries of this user" },
      from: {
        value: "TIME",
        meaning: "Only entries from this time on: 2030-01-31T12:00:00Z, or 12h for the last 12 hours",
      },
      to: { value: "TIME", meaning: "Only entries before this time" },
      watch: { meaning: "Shows new entries until interrupted" },
      follow: { meaning: "Same as --watch" },
      after: {
        value: "SEQUENCE",
        meaning: "With --watch, begins after this entry; 0 begins with the first",
      },
    },
    meaning:
      "Lists the uses of keys, oldest first, including refused attempts. name/NAME selects the entries of all versions.\n" +
      "--json also shows the request IDs and the hashes of the entries.",
    example: 'qsp kms audit "$KEY"',
    run: (input) => (isWatch(input) ? watch(input) : list(input)),
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

function isWatch({ options }: VerbInput): boolean {
  const isWanted = options.flag("watch") || options.flag("follow");
  if (!isWanted && options.text("after") !== undefined) throw usageError("--after needs --watch");
  return isWanted;
}

function readFilter({ operands: [keyId = ""], options }: VerbInput) {
  const [from, to] = [readTime(options, "from", -1), readTime(options, "to", -1)];
  return {
    keyId,
    operation: options.text("operation") ?? "",
    outcome: options.text("outcome") ?? "",
    user: options.text("user") ?? "",
    ...(from && { from }),
    ...(to && { to }),
  };
}

async function list(input: VerbInput): Promise<number> {
  const { output, server } = input;
  const filter = readFilter(input);
  return printList(output, method.getAuditLog.output, {
    ask: (pageToken) => server.ask(method.getAuditLog, { ...filter, pageToken }),
    itemsOf: ({ auditLog }) => auditLog,
    none: "There are no entries.",
    headers,
    toCells,
  });
}

async function watch(input: VerbInput): Promise<number> {
  const { options, output, server } = input;
  const afterSequence = options.whole("after", 0, Number.MAX_SAFE_INTEGER);
  const request = { ...readFilter(input), ...(afterSequence !== undefined && { afterSequence }) };
  for await (const answer of server.stream(method.watchAuditLog, oneOf(request))) {
    const { entry } = answer;
    if (entry !== undefined)
      output.answer(method.watchAuditLog.output, answer, () => toCells(entry).join("  "));
  }
  return exitCodes.done;
}

const headers = ["ENTRY", "TIME", "OPERATION", "OUTCOME", "USER", "ADDRESS", "KEY", "DETAILS"];

function toCells(entry: AuditEntry): string[] {
  const { sequence, timestamp, operation, outcome, user, clientAddress, keyId, details } = entry;
  return [String(sequence), time(timestamp), operation, outcome, user, clientAddress || "-", keyId, details];
}
