import { checkIntegrity } from "../../database/integrity.ts";
import { verifySchema } from "../../database/schema-objects.ts";
import { listLostAccounts } from "../../identity/lost-accounts.ts";
import { verifyCounts, verifyRecords } from "../../records/verify-records.ts";
import { findMissing } from "../../secrets/service-secrets.ts";
import { verifySecrets } from "../../secrets/verify-secrets.ts";
import { listUnindexed } from "../../services/kms/label-index.ts";
import { createKmsStore } from "../../services/kms/store.ts";
import { keyTable } from "../../services/kms/tables.ts";
import { verifyKeys } from "../../services/kms/verify-keys.ts";
import { loadLogVerification } from "../../services/registry.ts";
import { counted } from "../output/output.ts";
import { withCount } from "../output/progress.ts";
import { type Outcome, verdict } from "./store-verb.ts";
import { verifyParts } from "./verify-parts.ts";
import { existingStoreVerb } from "./with-store.ts";

/** Maximum faults to list; the others are only counted. */
const maxNamed = 20;

/** Verifies a store's content; works while servers run, and on restored backups. */
export const storeVerify = existingStoreVerb({
  line: "store verify",
  meaning:
    "Verifies that no key or secret is missing, every secret can be decrypted, no record was changed, and the stored\n" +
    "hashes and checkpoints of the verifiable logs match their entries. Also verifies the identity log; for the audit log\n" +
    "and the chain, use audit verify and chain verify. Checks a SQLite file as a whole first; for PostgreSQL, use pg_amcheck.",
  async work({ location, masterKey, loadTables, loadPackages, store, provider }) {
    const { kind } = location;
    const { owners, records: declarations } = await loadTables();
    const pages = await checkIntegrity({ kind, reader: store.reader });
    // Records on a damaged page are unreliable: checking them would report the wrong faults.
    if (pages.length > 0) return reportFaults(pages.map(describePageFault), "its file");
    const unindexed = await listUnindexed(store.reader, kind);
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
    const groups = owners.flatMap(({ serviceSecrets = [] }) => serviceSecrets);
    const missing = (await Promise.all(groups.map((group) => findMissing(store.reader, group)))).flat();
    const records = await verifyRecords(store, declarations);
    const parts = await verifyParts(store, provider);
    const lost = await listLostAccounts(store.reader);
    const answers = await store.verifyAnswers();
    const { verifyDerived } = await loadLogVerification(await loadPackages());
    const trees = await withCount("verifiable log hashes verified", (onProgress) =>
      verifyDerived(store, provider, onProgress),
    );
    const identities = await withCount("identity log entries verified", (onProgress) =>
      store.verifyIdentityLog({ onProgress, signsEnd: false }),
    );
    const faults = [
      ...schema.map((fault) => `In the schema, ${fault}.`),
      ...secrets.broken.map((identity) => `The secret ${identity} cannot be decrypted.`),
      ...missing.map(({ identity }) => `The secret ${identity} is missing.`),
      ...keys.faults.map(({ keyId, reason }) => `The key ${keyId} is damaged: ${reason}.`),
      ...unindexed.map((name) => `The label index lacks a label of the ${name}: lists by label miss it.`),
      ...records.damaged.map((name) => `The record of ${name} was changed outside of the server.`),
      ...records.withoutSecret.map((name) => `The secret key of ${name} is missing.`),
      ...records.restored.map(
        (name) => `The record of ${name} was restored, but a log records that it was removed or replaced.`,
      ),
      ...parts,
      ...lost.map((name) => `The ${name} is missing, but the identity log records no removal.`),
      ...answers.damaged.map((name) => `The ${name} was changed outside of the server.`),
      ...trees.flatMap(({ log, fault }) =>
        fault === undefined
          ? []
          : [`The log ${log} is damaged from entry ${fault.leaf + 1} on: ${fault.reason}.`],
      ),
      ...(identities.valid
        ? []
        : [
            `The identity log is damaged from entry ${identities.firstBrokenSequence} on: ${identities.reason}.`,
          ]),
    ];
    // Changed records explain different counts.
    if (faults.length === 0) {
      const lists = await verifyCounts(store, [keyTable, ...declarations]);
      faults.push(
        ...lists.map((list) => `The stored count of the list ${list} does not match its number of rows.`),
      );
    }
    const checkpoints = trees.reduce((sum, tree) => sum + tree.checkpoints, 0);
    const others = records.checked + answers.checked;
    const looked = `${counted(secrets.checked, "secret")}, ${counted(keys.checked, "key")}, ${counted(others, "other record")} and ${counted(checkpoints, "checkpoint")}`;
    if (faults.length > 0) return reportFaults(faults, looked);
    return `The store is intact: ${looked} are unchanged. To check entries and blocks, run qsp audit verify and qsp chain verify.`;
  },
});

/** Lists faults and their location. */
function reportFaults(faults: readonly string[], place: string): Outcome {
  const more = faults.length > maxNamed ? [`… and ${faults.length - maxNamed} more.`] : [];
  const sentence = `The store is damaged: ${counted(faults.length, "fault")} in ${place}; restore a backup.`;
  return verdict(false, [...faults.slice(0, maxNamed), ...more, sentence].join("\n"));
}

/** Quotes SQLite's message; in a damaged file, a name in it may contain any characters. */
function describePageFault(fault: string): string {
  return `The file is damaged: ${fault.replaceAll(/\p{C}/gu, "?")}.`;
}
