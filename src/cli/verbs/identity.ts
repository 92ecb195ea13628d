/** `qsp identity log` and `verify-log`: read the identity log through a server. */
import { IdentityLogService } from "#gen/pqc/identity_log_service_pb.ts";
import { verdictVerb } from "../call-verbs.ts";
import { entryLogVerb } from "../log-verbs.ts";
import { facts } from "../output/output.ts";
import type { Verb } from "../verb.ts";

const { method } = IdentityLogService;

/** Operations that entries record. */
const operations = [
  ...["LOG_IN", "ISSUE_TOKEN", "INTROSPECT_TOKEN", "REVOKE_TOKEN", "LOG_INS"],
  ...["CREATE_USER", "SET_PASSWORD", "REMOVE_USER", "CREATE_CLIENT", "SET_CLIENT_SECRET", "REMOVE_CLIENT"],
  ...["CREATE_ISSUER_KEY", "RETIRE_ISSUER_KEY"],
] as const;

export const identityVerbs: readonly Verb[] = [
  entryLogVerb(method.getIdentityLog, method.watchIdentityLog, {
    line: "identity log [NAME]",
    meaning:
      "Lists logins and changes to users, clients and issuer keys, oldest first; with a name, only entries for that name.\n" +
      "Requires the role auditor or admin. On the store's machine, audit identities does the same without a server.",
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
    meaning: "Has the server verify its whole identity log: hashes, links and signed checkpoints.",
    say: ({ valid, entries, head, firstBrokenSequence, reason }) =>
      valid
        ? `The identity log is valid.\n${facts({ entries: String(entries), head })}`
        : `The identity log is broken at entry ${firstBrokenSequence}: ${reason}.`,
  }),
];
