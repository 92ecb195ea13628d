/** `qsp identity log` and `verify-log`: the log of identities, as a server shows it. */
import { type IdentityLogEntry, IdentityLogService } from "#gen/pqc/identity_log_service_pb.ts";
import { printList, verdictVerb } from "./call-verbs.ts";
import { afterOption, entryFilterOptions, readEntryFilter, refuseAfter, watchEntries } from "./entry-log.ts";
import { usageError } from "./exit-codes.ts";
import { facts } from "./output.ts";
import { readTime } from "./time-options.ts";
import type { Verb, VerbInput } from "./verb.ts";

const { method } = IdentityLogService;

/** The operations that entries record. */
const operations = [
  ...["LOG_IN", "ISSUE_TOKEN", "INTROSPECT_TOKEN", "REVOKE_TOKEN", "LOG_INS"],
  ...["CREATE_USER", "SET_PASSWORD", "REMOVE_USER", "CREATE_CLIENT", "SET_CLIENT_SECRET", "REMOVE_CLIENT"],
  ...["CREATE_ISSUER_KEY", "RETIRE_ISSUER_KEY"],
] as const;

export const identityVerbs: readonly Verb[] = [
  {
    name: "identity log",
    operands: ["[NAME]"],
    options: { ...entryFilterOptions(operations, "what this user did"), ...afterOption },
    meaning:
      "Lists log-ins, and changes of users, clients and issuer keys, oldest first; with a name, those of one of them.\n" +
      "Needs the role auditor or admin. On the machine of the store, audit identities does the same without a server.",
    example: "qsp identity log ada",
    run: (input) => (input.options.flag("watch") ? watch(input) : list(input)),
  },
  verdictVerb(method.verifyIdentityLog, {
    line: "identity verify-log",
    meaning: "Has the server verify its whole log of identities: hashes, links and signed checkpoints.",
    ask: () => ({}),
    say: ({ valid, entries, head, firstBrokenSequence, reason }) =>
      valid
        ? `The log of identities is valid.\n${facts({ entries: String(entries), head })}`
        : `The log of identities is broken at entry ${firstBrokenSequence}: ${reason}.`,
  }),
];

function readFilter({ operands: [subject = ""], options }: VerbInput) {
  return { subject, ...readEntryFilter(options) };
}

async function list(input: VerbInput): Promise<number> {
  const { options } = input;
  refuseAfter(options);
  const [from, to] = [readTime(options, "from", -1), readTime(options, "to", -1)];
  const filter = { ...readFilter(input), ...(from && { from }), ...(to && { to }) };
  return printList(method.getIdentityLog, input, filter, {
    items: ({ entries }) => entries,
    none: "There are no entries.",
    columns,
  });
}

async function watch(input: VerbInput): Promise<number> {
  for (const name of ["from", "to"])
    if (input.options.flag(name)) throw usageError(`--${name} cannot be combined with --watch`);
  return watchEntries(method.watchIdentityLog, input, readFilter(input), ({ entry }) => entry, columns);
}

const columns = {
  ENTRY: "sequence",
  TIME: "timestamp",
  OPERATION: "operation",
  OUTCOME: "outcome",
  SUBJECT: ({ subject }: IdentityLogEntry) => subject || "-",
  BY: ({ user }: IdentityLogEntry) => user || "-",
  ADDRESS: ({ clientAddress }: IdentityLogEntry) => clientAddress || "-",
  DETAILS: "details",
} as const;
