import { checkIntegrity } from "../../database/integrity.ts";
import { verifySchema } from "../../database/schema-objects.ts";
import { listLostAccounts } from "../../identity/lost-accounts.ts";
import { verifyCounts, verifyRecords } from "../../records/verify-records.ts";
import { verifySecrets } from "../../secrets/verify-secrets.ts";
import { createKmsStore } from "../../services/kms/store.ts";
import { keyTable } from "../../services/kms/tables.ts";
import { verifyKeys } from "../../services/kms/verify-keys.ts";
import { loadLogVerification } from "../../services/registry.ts";
import { withCount } from "../output/count-progress.ts";
import { counted } from "../output/output.ts";
import { type Outcome, verdict } from "./store-verb.ts";
import { existingStoreVerb } from "./with-store.ts";

/** Maximum faults to list; the rest are only counted. */
const maxNamed = 20;

/** Verifies the content of a store, with or without a running server; also works on a restored backup. */
export const storeVerify = existingStoreVerb({
  line: "store verify",
  meaning:
    "Verifies that every secret can be decrypted, that every key is present, that no record was changed, and that the stored\n" +
    "hashes and checkpoints of the verifiable logs are those of their entries. Also verifies the log of identities; audit\n" +
    "verify does it for the audit log. First verifies a SQLite file as a whole; for PostgreSQL, pg_amcheck does that.",
  async work({ location, masterKey, loadTables, loadPackages, store, provider }) {
    const { kind } = location;
    const { owners, records: declarations } = await loadTables();
    const pages = await checkIntegrity({ kind, reader: store.reader });
    // A record on a damaged page has any content, or none, so looking at records would name wrong faults.
    if (pages.length > 0) return reportFaults(pages.map(describePageFault), "its file");
    const schema = await verifySchema({ kind, owners, reader: store.reader });
    const keys = await withCount("keys verified", (onProgress) =>
      verifyKeys({
        ...{ store, keys: createKmsStore(store), provider, onProgress },
        ...{ location, masterKey },
      }),
    );
    const secrets = await withCount("secrets opened", (onProgress) =>
      verifySecrets(store, onProgress, keys.opened),
    );
    const records = await verifyRecords(store, declarations);
    const lost = await listLostAccounts(store.reader);
    const answers = await store.verifyAnswers();
    const { verifyDerived } = await loadLogVerification(await loadPackages());
    const trees = await withCount("hashes of verifiable logs verified", (onProgress) =>
      verifyDerived(store, provider, onProgress),
    );
    const identities = await withCount("entries of the log of identities verified", (onProgress) =>
      store.verifyIdentityLog({ onProgress }),
    );
    const faults = [
      ...schema.map((fault) => `In the schema, ${fault}.`),
      ...secrets.broken.map((identity) => `The secret ${identity} cannot be decrypted.`),
      ...keys.faults.map(({ keyId, reason }) => `The key ${keyId} is damaged: ${reason}.`),
      ...records.damaged.map((name) => `The record of ${name} was changed outside of the server.`),
      ...lost.map((name) => `The ${name} is missing, although the log of identities has no removal.`),
      ...answers.damaged.map((name) => `The ${name} was changed outside of the server.`),
      ...trees.flatMap(({ log, fault }) =>
        fault === undefined
          ? []
          : [`The log ${log} is damaged from entry ${fault.leaf + 1} on: ${fault.reason}.`],
      ),
      ...(identities.valid
        ? []
        : [
            `The log of identities is damaged from entry ${identities.firstBrokenSequence} on: ${identities.reason}.`,
          ]),
    ];
    // Where records were changed, their counts differ for that reason.
    if (faults.length === 0) {
      const lists = await verifyCounts(store, [keyTable, ...declarations]);
      faults.push(...lists.map((list) => `The count of the list ${list} is not the number of its rows.`));
    }
    const checkpoints = trees.reduce((sum, tree) => sum + tree.checkpoints, 0);
    const others = records.checked + answers.checked;
    const looked = `${counted(secrets.checked, "secret")}, ${counted(keys.checked, "key")}, ${counted(others, "other record")} and ${counted(checkpoints, "checkpoint")}`;
    if (faults.length > 0) return reportFaults(faults, looked);
    return `The store is intact: ${looked} are unchanged. qsp audit verify checks the text of audit entries.`;
  },
});

/** Lists faults, and where they are. */
function reportFaults(faults: readonly string[], place: string): Outcome {
  const more = faults.length > maxNamed ? [`… and ${faults.length - maxNamed} more.`] : [];
  const sentence = `The store is damaged: ${counted(faults.length, "fault")} in ${place}; restore a backup.`;
  return verdict(false, [...faults.slice(0, maxNamed), ...more, sentence].join("\n"));
}

/** SQLite's own words; in a damaged file, a name in them may hold any characters. */
function describePageFault(fault: string): string {
  return `The file is damaged: ${fault.replaceAll(/\p{C}/gu, "?")}.`;
}
