/** `qsp identity log` and `verify-log`: the log of identities, as a server shows it. */
import { type IdentityLogEntry, IdentityLogService } from "#gen/pqc/identity_log_service_pb.ts";
import { oneOf } from "./client.ts";
import { exitCodes, usageError } from "./exit-codes.ts";
import { facts, time } from "./output.ts";
import { printList } from "./print-list.ts";
import { readTime } from "./time-options.ts";
import type { Verb, VerbInput } from "./verb.ts";

const { method } = IdentityLogService;

/** The operations that entries record. */
const operations = [
  ...[
    "LOG_IN",
    "ISSUE_TOKEN",
    "INTROSPECT_TOKEN",
    "REVOKE_TOKEN",
    "LOG_INS",
    "CREATE_USER",
    "SET_PASSWORD",
    "REMOVE_USER",
  ],
  ...["CREATE_CLIENT", "SET_CLIENT_SECRET", "REMOVE_CLIENT", "CREATE_ISSUER_KEY", "RETIRE_ISSUER_KEY"],
] as const;

export const identityVerbs: readonly Verb[] = [
  {
    name: "identity log",
    operands: ["[NAME]"],
    options: {
      operation: { value: "NAME", meaning: "Only entries of this operation", offers: operations },
      outcome: { value: "OUTCOME", meaning: "Only entries with this outcome", offers: ["OK", "REFUSED"] },
      user: { value: "USER", meaning: "Only entries of what this user did" },
      from: {
        value: "TIME",
        meaning: "Only entries from this time on: 2030-01-31T12:00:00Z, or 12h for the last 12 hours",
      },
      to: { value: "TIME", meaning: "Only entries before this time" },
      watch: { meaning: "Shows new entries until interrupted" },
      after: {
        value: "SEQUENCE",
        meaning: "With --watch, begins after this entry; 0 begins with the first",
      },
    },
    meaning:
      "Lists log-ins, and changes of users, clients and issuer keys, oldest first; with a name, those of one of them.\n" +
      "Needs the role auditor or admin. On the machine of the store, audit identities does the same without a server.",
    example: "qsp identity log ada",
    run: (input) => (input.options.flag("watch") ? watch(input) : list(input)),
  },
  {
    name: "identity verify-log",
    operands: [],
    options: {},
    meaning: "Has the server verify its whole log of identities: hashes, links and signed checkpoints.",
    example: "qsp identity verify-log",
    async run({ output, server }) {
      const answer = await server.ask(method.verifyIdentityLog, {});
      const { valid, entries, head, firstBrokenSequence, reason } = answer;
      output.answer(method.verifyIdentityLog.output, answer, () =>
        valid
          ? `The log of identities is valid.\n${facts({ entries: String(entries), head })}`
          : `The log of identities is broken at entry ${firstBrokenSequence}: ${reason}.`,
      );
      return valid ? exitCodes.done : exitCodes.no;
    },
  },
];

function readFilter({ operands: [subject = ""], options }: VerbInput) {
  return {
    subject,
    operation: options.text("operation") ?? "",
    outcome: options.text("outcome") ?? "",
    user: options.text("user") ?? "",
  };
}

async function list(input: VerbInput): Promise<number> {
  const { options, output, server } = input;
  if (options.text("after") !== undefined) throw usageError("--after needs --watch");
  const [from, to] = [readTime(options, "from", -1), readTime(options, "to", -1)];
  const filter = { ...readFilter(input), ...(from && { from }), ...(to && { to }) };
  return printList(output, method.getIdentityLog.output, {
    ask: (pageToken) => server.ask(method.getIdentityLog, { ...filter, pageToken }),
    itemsOf: ({ entries }) => entries,
    none: "There are no entries.",
    headers,
    toCells,
  });
}

async function watch(input: VerbInput): Promise<number> {
  const { options, output, server } = input;
  for (const name of ["from", "to"])
    if (options.text(name) !== undefined) throw usageError(`--${name} cannot be combined with --watch`);
  const afterSequence = options.whole("after", 0, Number.MAX_SAFE_INTEGER);
  const request = { ...readFilter(input), ...(afterSequence !== undefined && { afterSequence }) };
  for await (const answer of server.stream(method.watchIdentityLog, oneOf(request))) {
    const { entry } = answer;
    if (entry !== undefined)
      output.answer(method.watchIdentityLog.output, answer, () => toCells(entry).join("  "));
  }
  return exitCodes.done;
}

const headers = ["ENTRY", "TIME", "OPERATION", "OUTCOME", "SUBJECT", "BY", "ADDRESS", "DETAILS"];

function toCells(entry: IdentityLogEntry): string[] {
  const { sequence, timestamp, operation, outcome, subject, user, clientAddress, details } = entry;
  return [
    ...[String(sequence), time(timestamp), operation, outcome],
    ...[subject || "-", user || "-", clientAddress || "-", details],
  ];
}
