/** `qsp identity log` and `verify-log`: the log of identities, as a server shows it. */
import { IdentityLogService } from "#gen/pqc/identity_log_service_pb.ts";
import { verdictVerb } from "../call-verbs.ts";
import { entryLogVerb } from "../log-verbs.ts";
import { facts } from "../output/output.ts";
import type { Verb } from "../verb.ts";

const { method } = IdentityLogService;

/** The operations that entries record. */
const operations = [
  ...["LOG_IN", "ISSUE_TOKEN", "INTROSPECT_TOKEN", "REVOKE_TOKEN", "LOG_INS"],
  ...["CREATE_USER", "SET_PASSWORD", "REMOVE_USER", "CREATE_CLIENT", "SET_CLIENT_SECRET", "REMOVE_CLIENT"],
  ...["CREATE_ISSUER_KEY", "RETIRE_ISSUER_KEY"],
] as const;

export const identityVerbs: readonly Verb[] = [
  entryLogVerb(method.getIdentityLog, method.watchIdentityLog, {
    line: "identity log [NAME]",
    meaning:
      "Lists log-ins, and changes of users, clients and issuer keys, oldest first; with a name, those of one of them.\n" +
      "Needs the role auditor or admin. On the machine of the store, audit identities does the same without a server.",
    example: "qsp identity log ada",
    operations,
    user: "what this user did",
    watchesTimes: false,
    ask: (subject, filter) => ({ subject, ...filter }),
    items: ({ entries }) => entries,
    entryOf: ({ entry }) => entry,
    columns: {
      ENTRY: "sequence",
      TIME: "timestamp",
      OPERATION: "operation",
      OUTCOME: "outcome",
      SUBJECT: ({ subject }) => subject || "-",
      BY: ({ user }) => user || "-",
      ADDRESS: ({ clientAddress }) => clientAddress || "-",
      DETAILS: "details",
    },
  }),
  verdictVerb(method.verifyIdentityLog, {
    line: "identity verify-log",
    meaning: "Has the server verify its whole log of identities: hashes, links and signed checkpoints.",
    say: ({ valid, entries, head, firstBrokenSequence, reason }) =>
      valid
        ? `The log of identities is valid.\n${facts({ entries: String(entries), head })}`
        : `The log of identities is broken at entry ${firstBrokenSequence}: ${reason}.`,
  }),
];
