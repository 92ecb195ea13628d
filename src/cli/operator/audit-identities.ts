/** The operator's verbs for the log of identities: log-ins, users, clients, issuer keys and revocations. */
import type { AuditEntry } from "../../audit/chain.ts";
import { readEntries } from "../../audit/log.ts";
import { identityLog } from "../../audit/tables.ts";
import { exitCodes } from "../exit-codes.ts";
import { withCount } from "../output/count-progress.ts";
import { describeVerification, readCheckpoint } from "./audit-verify.ts";
import { type StoreVerb, verdict } from "./store-verb.ts";
import { existingStoreVerb, withStore } from "./with-store.ts";

/** Entries to read at a time. */
const pageEntries = 1000;

const list = existingStoreVerb({
  line: "audit identities [NAME]",
  meaning:
    "Lists log-ins, and changes of users, clients and issuer keys, oldest first; with a name, those of one of them.",
  example: "qsp audit identities ada",
  async work({ operands: [keyId], store }) {
    let after = 0;
    for (;;) {
      const filter = keyId === undefined ? {} : { keyId };
      const entries = await readEntries(store.reader, after, pageEntries, filter, identityLog);
      for (const entry of entries) process.stdout.write(`${describeEntry(entry)}\n`);
      const last = entries.at(-1);
      if (last === undefined || entries.length < pageEntries) return { exitCode: exitCodes.done };
      after = last.sequence;
    }
  },
});

const verify: StoreVerb = {
  line: "audit verify-identities [CHECKPOINT-FILE]",
  operandFiles: { "CHECKPOINT-FILE": "reads" },
  meaning: "Verifies the log of identities, optionally against a checkpoint that you stored elsewhere.",
  async run(input) {
    const [file] = input.operands;
    const outside = file === undefined ? undefined : readCheckpoint(file);
    const found = await withStore(input, "existing", (store) =>
      withCount("entries verified", (onProgress) => store.verifyIdentityLog({ outside, onProgress })),
    );
    return verdict(found.valid, describeVerification("identity log", found));
  },
};

/** The verbs for the log of identities. */
export const auditIdentityVerbs: readonly StoreVerb[] = [list, verify];

/** One line. */
function describeEntry(entry: AuditEntry): string {
  const { sequence, timestamp, operation, outcome, keyId, user, clientAddress, requestId, details } = entry;
  const facts = [
    ...(user === keyId ? [] : [`by ${user}`]),
    ...(clientAddress === "" ? [] : [`from ${clientAddress}`]),
    ...(requestId === "" ? [] : [`call ${requestId}`]),
    ...(details === "" ? [] : [details]),
  ];
  const parts = [sequence, timestamp.toISOString(), operation, outcome, keyId || "-", ...facts];
  // A changed entry of the database must not control the terminal.
  return parts.join("  ").replaceAll(/\p{C}/gu, "?");
}
