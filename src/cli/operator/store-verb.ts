/** Shared by the operator verbs: the `qsp serve` settings, access to the store, and explanations of errors. */

import { CheckpointInvalidError } from "../../audit/verification.ts";
import type { AddedSettings } from "../../config/setting.ts";
import { type Config, ConfigError, listSettings, readConfig } from "../../config.ts";
import { CryptoError } from "../../crypto/crypto-error.ts";
import { type DatabaseLocation, describeLocation } from "../../database/database.ts";
import { RecordDamagedError, StorageError } from "../../database/store-error.ts";
import { collectTables, type StoreTables } from "../../open-store.ts";
import type { MasterKeySource } from "../../secrets/master-key.ts";
import { storeSettings } from "../../settings/store-settings.ts";
import type { Options, ParsedOptions } from "../command-line/options.ts";
import { CliError, distrustError, exitCodes, usageError } from "../exit-codes.ts";
import { declareVerb, type Verb, type VerbDeclaration, type VerbInput } from "../verb.ts";
import { explainStoreFailure } from "./explain-failure.ts";

/** What an operator verb receives. */
export interface StoreVerbInput extends Pick<VerbInput, "operands" | "options" | "files" | "loadPackages"> {
  readonly config: Config;
  readonly location: DatabaseLocation;
  readonly masterKey: MasterKeySource;
  readonly loadTables: () => Promise<StoreTables>;
}

/** A verb that works directly on a store; works while servers run. */
export interface StoreVerb
  extends Pick<VerbDeclaration, "line" | "options" | "operandFiles" | "otherFiles" | "meaning" | "example"> {
  /** Whether the verb logs warnings itself. */
  readonly hasLog?: boolean;
  /** @returns the text for standard output, once done */
  run(input: StoreVerbInput): Promise<string | Outcome>;
}

/** How an operator verb ends. */
export interface Outcome {
  /** The text for standard output. */
  readonly text?: string;
  /** 1 if the verb found a fault. */
  readonly exitCode: number;
}

/** Creates the outcome of a verification. */
export function verdict(isYes: boolean, text: string): Outcome {
  return { text, exitCode: isYes ? exitCodes.done : exitCodes.no };
}

/** Warns that the process list exposes the database password. */
export const passwordWarning =
  "every user of this machine can read the password in --database-url; pass the URL in QSP_DATABASE_URL, or the password in PGPASSWORD or ~/.pgpass";

/** The settings that select the store; a verb's help shows only these. */
const storeSettingNames = ["data-dir", "database-url", "master-key-file", "master-key-command"];

/** Converts a store verb to a command-line verb. */
export function toVerb(verb: StoreVerb, added: readonly AddedSettings[] = []): Verb {
  const settings = createSettingOptions(added);
  return declareVerb({
    ...verb,
    isLocal: true,
    settings,
    shownSettings: storeSettingNames,
    async run({ operands, options, files, loadPackages }) {
      const config = readConfig(toFlags(settings, options), process.env, added);
      const store = storeSettings(config);
      try {
        if (!verb.hasLog && showsPassword(config)) process.stderr.write(`qsp: warning: ${passwordWarning}\n`);
        const loadTables = async (): Promise<StoreTables> => collectTables(await loadPackages());
        const input = { operands, options, files, loadPackages, loadTables, config, ...store };
        const outcome = await verb.run(input);
        const { text, exitCode } = typeof outcome === "string" ? verdict(true, outcome) : outcome;
        if (text !== undefined) process.stdout.write(`${text}\n`);
        return exitCode;
      } catch (error) {
        throw explainStoreFailure(error, describeLocation(store.location));
      }
    },
    explain: explainOperatorError,
  });
}

/** Creates options from the settings. If one is given twice, the last value wins. */
function createSettingOptions(added: readonly AddedSettings[]): Options {
  return Object.fromEntries(
    listSettings(added)
      .filter(({ isSecret }) => isSecret !== true)
      .map(({ name, valueName, meaning, values, fallback }) => [
        name,
        {
          ...(valueName !== undefined && { value: valueName.toUpperCase() }),
          meaning: fallback === "" ? meaning : `${meaning} (${fallback})`,
          isMany: true,
          ...(values && { offers: values }),
          ...(["file", "files", "directory"].includes(valueName ?? "") && { offers: "files" as const }),
        },
      ]),
  );
}

/** Converts the settings on a command line to flags for `readConfig`. */
function toFlags(settings: Options, options: ParsedOptions): string[] {
  return Object.entries(settings).flatMap(([name, { value }]) => {
    if (!options.flag(name)) return [];
    return value === undefined ? [`--${name}`] : [`--${name}=${options.all(name).at(-1)}`];
  });
}

/** Explains an error that the operator can fix; returns undefined for a bug. */
export function explainOperatorError(error: unknown): CliError | undefined {
  // Not the usage exit code: a service manager should retry.
  if (error instanceof StorageError && error.mayPass)
    return new CliError(exitCodes.unreachable, error.message);
  if (error instanceof CheckpointInvalidError) return distrustError(error.message);
  const isExplained =
    error instanceof ConfigError ||
    error instanceof StorageError ||
    error instanceof CryptoError ||
    error instanceof RecordDamagedError;
  return isExplained ? usageError(error.message) : undefined;
}

/** Returns whether the process list exposes the database password. */
export function showsPassword({ databaseUrl }: Config): boolean {
  if (!process.argv.some((arg) => databaseUrl !== "" && arg.endsWith(databaseUrl))) return false;
  const { password, searchParams } = new URL(databaseUrl);
  return password !== "" || searchParams.has("password");
}
