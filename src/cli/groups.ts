/** All core verbs except `serve`, by their first words. */
import { type ChangedVerbs, collectSettings, type Extension, type ExtensionVerbs } from "../extension.ts";
import type { StoreVerb } from "./operator/store-verb.ts";
import type { Verb, VerbTable } from "./verb.ts";

/** Verbs that call a server or work only on local files. */
const clientVerbs: VerbTable = {
  call: async () => (await import("./verbs/call.ts")).callVerbs,
  login: async () => (await import("./verbs/login.ts")).loginVerbs,
  logout: async () => (await import("./verbs/login.ts")).logoutVerbs,
  health: async () => (await import("./verbs/health.ts")).healthVerbs,
  keygen: async () => (await import("./verbs/keygen.ts")).keygenVerbs,
  sign: async () => (await import("./verbs/signatures.ts")).signVerbs,
  verify: async () => (await import("./verbs/signatures.ts")).verifyVerbs,
  kms: async () => [
    ...(await import("./verbs/kms/keys.ts")).kmsVerbs,
    ...(await import("./verbs/kms/exports.ts")).kmsExportVerbs,
    ...(await import("./verbs/kms/grants.ts")).kmsGrantVerbs,
    ...(await import("./verbs/kms/secrets.ts")).kmsSecretVerbs,
    ...(await import("./verbs/logs.ts")).kmsAuditVerbs,
  ],
  identity: async () => (await import("./verbs/logs.ts")).identityVerbs,
  device: async () => (await import("./verbs/device/device.ts")).deviceVerbs,
  tunnel: async () => (await import("./verbs/tunnel/tunnel.ts")).tunnelVerbs,
  wallet: async () => (await import("./verbs/wallet.ts")).walletVerbs,
  chain: async () => (await import("./verbs/chain.ts")).chainVerbs,
  nft: async () => (await import("./verbs/nft.ts")).nftVerbs,
  multisig: async () => (await import("./verbs/defi.ts")).multisigVerbs,
  proposal: async () => (await import("./verbs/defi.ts")).proposalVerbs,
  completion: async () => (await import("./verbs/completion/completion.ts")).completionVerbs,
};

/** Operator verbs, which work on a store. */
const storeVerbs: Readonly<Record<string, () => Promise<readonly StoreVerb[]>>> = {
  audit: async () => [
    (await import("./operator/audit-verify.ts")).auditVerify,
    ...(await import("./operator/audit-identities.ts")).auditIdentityVerbs,
  ],
  store: async () => [
    (await import("./operator/store-init.ts")).storeInit,
    (await import("./operator/store-verify.ts")).storeVerify,
    (await import("./operator/store-cut-log.ts")).storeCutLog,
  ],
  // Separate from the other `chain` verbs, which load no store code.
  "chain verify": async () => [(await import("./operator/chain-verify.ts")).chainVerify],
  backup: async () => [(await import("./operator/backup.ts")).backup],
  restore: async () => [(await import("./operator/restore.ts")).restore],
  "master-key": async () => [
    (await import("./operator/master-key-rotate.ts")).masterKeyRotate,
    (await import("./operator/master-key-split.ts")).masterKeySplit,
  ],
  issuer: async () => [(await import("./operator/issuer-rotate.ts")).issuerRotate],
  user: async () => (await import("./operator/users.ts")).userVerbs,
  client: async () => (await import("./operator/clients.ts")).clientVerbs,
  ca: async () => (await import("./operator/ca.ts")).caVerbs,
};

/** The part of an extension that affects verbs. */
type VerbsOfExtension = Pick<Extension, "settings" | "verbs" | "changedVerbs" | "changedStoreVerbs">;

/** Creates the table of all verbs: the core's, with changes from extensions, and the extensions' own. */
export function createVerbTable(extensions: readonly VerbsOfExtension[] = []): VerbTable {
  const toLoader = (load: () => Promise<readonly StoreVerb[]>) => async (): Promise<readonly Verb[]> => {
    const { toVerb } = await import("./operator/store-verb.ts");
    // Operator verbs accept the settings of extensions too.
    const added = await collectSettings(extensions);
    return (await load()).map((verb) => toVerb(verb, added));
  };
  const ofClient = change(
    clientVerbs,
    extensions.flatMap(({ changedVerbs = [] }) => changedVerbs),
  );
  const ofStore = change(
    storeVerbs,
    extensions.flatMap(({ changedStoreVerbs = [] }) => changedStoreVerbs),
  );
  const loaders = Object.entries(ofStore).map(([words, load]) => [words, toLoader(load)]);
  return addVerbs(
    {
      ...ofClient,
      ...Object.fromEntries(loaders),
      // An operator verb that needs no store.
      "master-key combine": async () => (await import("./verbs/master-key-combine.ts")).masterKeyCombineVerbs,
    },
    extensions.flatMap(({ verbs = [] }) => verbs),
  );
}

type Loaders<V> = Readonly<Record<string, () => Promise<readonly V[]>>>;

function change<V>(table: Loaders<V>, changed: readonly ChangedVerbs<V>[]): Loaders<V> {
  const all = { ...table };
  for (const { word, load } of changed) {
    const loadBefore = all[word];
    if (loadBefore === undefined) throw new Error(`an extension changes the unknown verb ${word}`);
    all[word] = async () => (await load())(await loadBefore());
  }
  return all;
}

/** Adds extension verbs at their declared positions in the help. */
export function addVerbs(table: VerbTable, added: readonly ExtensionVerbs[]): VerbTable {
  const entries = Object.entries(table);
  for (const { word, after, groupMeaning, load } of added) {
    const index = entries.findIndex(([words]) => words === after);
    if (index < 0) throw new Error(`${word} is placed after the unknown verb ${after}`);
    const loadOfGroup = async () => (await load()).map((verb) => ({ ...verb, groupMeaning }));
    entries.splice(index + 1, 0, [word, groupMeaning === undefined ? load : loadOfGroup]);
  }
  return Object.fromEntries(entries);
}

/** Loads all verbs, in help order. */
export async function loadAllVerbs(table: VerbTable): Promise<readonly Verb[]> {
  return (await Promise.all(Object.values(table).map((load) => load()))).flat();
}

/** Loads the verbs that start with a word; returns none for an unknown word. */
export async function loadGroup(table: VerbTable, word: string): Promise<readonly Verb[]> {
  const group = Object.entries(table).filter(([words]) => words.split(" ")[0] === word);
  return loadAllVerbs(Object.fromEntries(group));
}

/** Loads only the verb at the start of a command line. */
export async function loadVerb(table: VerbTable, args: readonly string[]): Promise<Verb | undefined> {
  const words = [args.slice(0, 2).join(" "), args[0] ?? ""].find((key) => Object.hasOwn(table, key));
  const verbs = words === undefined ? [] : await table[words]?.();
  // No verb name is a prefix of another.
  return verbs?.find(({ name }) => name.split(" ").every((word, i) => args[i] === word));
}
