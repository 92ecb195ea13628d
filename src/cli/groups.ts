/** Where the client's verbs are, by their first word. A file is loaded only when one of its verbs is asked for. */
import type { Verb } from "./verb.ts";

/** The first words of the client's verbs; every other first word is the operator's, and none means to serve. */
export const groups = {
  call: async () => (await import("./call.ts")).callVerbs,
  login: async () => (await import("./login.ts")).loginVerbs,
  logout: async () => (await import("./login.ts")).logoutVerbs,
  health: async () => (await import("./health.ts")).healthVerbs,
  keygen: async () => (await import("./keygen.ts")).keygenVerbs,
  sign: async () => (await import("./sign.ts")).signVerbs,
  verify: async () => (await import("./verify.ts")).verifyVerbs,
  kms: async () => [
    ...(await import("./kms.ts")).kmsVerbs,
    ...(await import("./kms-secrets.ts")).kmsSecretVerbs,
    ...(await import("./kms-audit.ts")).kmsAuditVerbs,
  ],
  device: async () => [
    ...(await import("./device.ts")).deviceVerbs,
    ...(await import("./device-readings.ts")).deviceReadingVerbs,
    ...(await import("./device-firmware.ts")).deviceFirmwareVerbs,
  ],
  tunnel: async () => (await import("./tunnel.ts")).tunnelVerbs,
  wallet: async () => (await import("./wallet.ts")).walletVerbs,
  chain: async () => (await import("./chain.ts")).chainVerbs,
  nft: async () => (await import("./nft.ts")).nftVerbs,
  multisig: async () => (await import("./multisig.ts")).multisigVerbs,
  proposal: async () => (await import("./proposal.ts")).proposalVerbs,
  completion: async () => (await import("./completion.ts")).completionVerbs(loadAllVerbs),
  help: async () => [],
} as const satisfies Record<string, () => Promise<readonly Verb[]>>;

/** The first word of a verb of the client. */
export type GroupName = keyof typeof groups;

/** The operator's command whose first word is also the client's: it reads a store, `chain check` asks a server. */
const operatorsChainCommand = "verify";

/** Tells whether a command line is the client's. */
export function isClientLine([word = "", second]: readonly string[]): boolean {
  return Object.hasOwn(groups, word) && !(word === "chain" && second === operatorsChainCommand);
}

/** Loads the verbs of one group. */
export function loadGroup(name: GroupName): Promise<readonly Verb[]> {
  return groups[name]();
}

/** Loads all verbs, in the order of the help. */
export async function loadAllVerbs(): Promise<readonly Verb[]> {
  return (await Promise.all(Object.values(groups).map((load) => load()))).flat();
}
