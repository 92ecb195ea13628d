/** `qsp kms audit` and `verify-audit`. */
import type { AuditEntry } from "#gen/kms/audit_pb.ts";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { askPages, oneOf } from "./client.ts";
import { exitCodes } from "./exit-codes.ts";
import { facts, table, time } from "./output.ts";
import type { Verb, VerbInput } from "./verb.ts";

const { method } = KmsService;

export const kmsAuditVerbs: readonly Verb[] = [
  {
    name: "kms audit",
    operands: ["[KEY-ID]"],
    options: {
      follow: { meaning: "Shows new entries until interrupted" },
      after: {
        value: "SEQUENCE",
        meaning: "With --follow, begins after this entry; 0 begins with the first",
      },
    },
    meaning: "Lists the uses of keys, oldest first, including refused attempts.",
    example: 'qsp kms audit "$KEY"',
    run: (input) => (input.options.flag("follow") ? follow(input) : list(input)),
  },
  {
    name: "kms verify-audit",
    operands: [],
    options: {},
    meaning: "Has the server verify its whole audit log: hashes, links and signed checkpoints.",
    example: "qsp kms verify-audit",
    async run({ output, server }) {
      const answer = await server.ask(method.verifyAuditLog, {});
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

async function list({ operands: [keyId = ""], output, server }: VerbInput): Promise<number> {
  const answer = await askPages(
    (pageToken) => server.ask(method.getAuditLog, { keyId, pageToken }),
    ({ auditLog }) => auditLog,
  );
  output.answer(method.getAuditLog.output, answer, () =>
    answer.auditLog.length === 0 ? "There are no entries." : table(headers, answer.auditLog.map(toCells)),
  );
  return exitCodes.done;
}

async function follow({ operands: [keyId = ""], options, output, server }: VerbInput): Promise<number> {
  const afterSequence = options.whole("after", 0, Number.MAX_SAFE_INTEGER);
  const request = { keyId, ...(afterSequence !== undefined && { afterSequence }) };
  for await (const answer of server.stream(method.watchAuditLog, oneOf(request))) {
    const { entry } = answer;
    if (entry !== undefined)
      output.answer(method.watchAuditLog.output, answer, () => toCells(entry).join("  "));
  }
  return exitCodes.done;
}

const headers = ["ENTRY", "TIME", "OPERATION", "OUTCOME", "USER", "KEY", "DETAILS"];

function toCells({ sequence, timestamp, operation, outcome, user, keyId, details }: AuditEntry): string[] {
  return [String(sequence), time(timestamp), operation, outcome, user, keyId, details];
}
