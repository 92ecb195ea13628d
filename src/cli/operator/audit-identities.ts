/** Operator verbs for the identity log: logins, users, clients, issuer keys and revocations. */
import type { AuditEntry } from "../../audit/chain.ts";
import { readEntries } from "../../audit/log.ts";
import { identityLog } from "../../audit/tables.ts";
import { exitCodes } from "../exit-codes.ts";
import { cell } from "../output/output.ts";
import { withCount } from "../output/progress.ts";
import { describeVerification, readCheckpoint } from "./audit-verify.ts";
import { type StoreVerb, verdict } from "./store-verb.ts";
import { existingStoreVerb, withStore } from "./with-store.ts";

/** Entries per page. */
const pageEntries = 1000;

const list = existingStoreVerb({
  line: "audit identities [NAME]",
  meaning:
    "Lists logins and changes to users, clients and issuer keys, oldest first; with a name, only entries for that name.",
  example: "qsp audit identities ada",
  async work({ operands: [keyId], store }) {
    let after = 0;
    for (;;) {
      const filter = keyId === undefined ? {} : { keyId };
      const entries = await readEntries(
        store.reader,
        { after, limit: pageEntries },
        { filter, log: identityLog },
      );
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
  meaning: "Verifies the identity log, optionally against a checkpoint that you stored elsewhere.",
  async run(input) {
    const [file] = input.operands;
    const outside = file === undefined ? undefined : readCheckpoint(file);
    const found = await withStore(input, "existing", (store) =>
      withCount("entries verified", (onProgress) =>
        store.verifyIdentityLog({ outside, onProgress, signsEnd: false }),
      ),
    );
    return verdict(found.valid, describeVerification("identity log", found, outside));
  },
};

export const auditIdentityVerbs: readonly StoreVerb[] = [list, verify];

function describeEntry(entry: AuditEntry): string {
  const { sequence, timestamp, operation, outcome, keyId, user, clientAddress, requestId, details } = entry;
  const facts = [
    ...(user === keyId ? [] : [`by ${user}`]),
    ...(clientAddress === "" ? [] : [`from ${clientAddress}`]),
    ...(requestId === "" ? [] : [`call ${requestId}`]),
    ...(details === "" ? [] : [details]),
  ];
  const parts = [sequence, timestamp.toISOString(), operation, outcome, keyId || "-", ...facts];
  // A tampered database entry must not control the terminal.
  return parts.map((part) => cell(String(part).replaceAll(/\p{C}/gu, "?"))).join("  ");
}
