/** The parts that the operator's verbs share: the settings of `qsp serve`, a store, and the explanation of errors. */

import type { AddedSettings } from "../../config/setting.ts";
import { type Config, ConfigError, listSettings, readConfig } from "../../config.ts";
import { CryptoError } from "../../crypto/crypto-error.ts";
import { type DatabaseLocation, describeLocation } from "../../database/database.ts";
import { RecordDamagedError, StorageError } from "../../database/store-error.ts";
import { collectTables, type StoreTables } from "../../open-store.ts";
import type { MasterKeySource } from "../../secrets/master-key.ts";
import { storeSettings } from "../../settings/store-settings.ts";
import type { Options, ParsedOptions } from "../command-line/options.ts";
import { CliError, exitCodes, usageError } from "../exit-codes.ts";
import { declareVerb, type Verb, type VerbDeclaration, type VerbInput } from "../verb.ts";
import { explainStoreFailure } from "./explain-failure.ts";

/** The input of an operator's verb. */
export interface StoreVerbInput extends Pick<VerbInput, "operands" | "options" | "files" | "loadPackages"> {
  readonly config: Config;
  readonly location: DatabaseLocation;
  readonly masterKey: MasterKeySource;
  /** Loads the tables of the store. */
  readonly loadTables: () => Promise<StoreTables>;
}

/** A verb that works on a store directly, with or without a running server. */
export interface StoreVerb
  extends Pick<VerbDeclaration, "line" | "options" | "operandFiles" | "meaning" | "example"> {
  /** Writes warnings to its own log. */
  readonly hasLog?: boolean;
  /** @returns what it says on standard output, if it is done */
  run(input: StoreVerbInput): Promise<string | Outcome>;
}

/** How a verb ends. */
export interface Outcome {
  /** What it says on standard output. */
  readonly text?: string;
  /** 1 if it found a fault. */
  readonly exitCode: number;
}

/** The outcome of a verb that verifies. */
export function verdict(isYes: boolean, text: string): Outcome {
  return { text, exitCode: isYes ? exitCodes.done : exitCodes.no };
}

/** Warns that the list of processes shows the password of the database. */
export const passwordWarning =
  "every user of this machine can read the password in --database-url; give the URL in QSP_DATABASE_URL, or the password in PGPASSWORD or ~/.pgpass";

/** The settings that select the store; the help of a verb shows only these. */
const storeSettingNames = ["data-dir", "database-url", "master-key-file"];

/** Turns a store verb into a verb of the command line. */
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

/** Creates the settings as options of a verb. If one is given twice, the last value counts. */
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

/** Converts the settings of a command line to flags for `readConfig`. */
function toFlags(settings: Options, options: ParsedOptions): string[] {
  return Object.entries(settings).flatMap(([name, { value }]) => {
    if (!options.flag(name)) return [];
    return value === undefined ? [`--${name}`] : [`--${name}=${options.all(name).at(-1)}`];
  });
}

/** Explains an error that the operator can fix. @returns undefined for a bug */
export function explainOperatorError(error: unknown): CliError | undefined {
  // Not the code of a wrong setting: a service manager should try again.
  if (error instanceof StorageError && error.mayPass)
    return new CliError(exitCodes.unreachable, error.message);
  const isExplained =
    error instanceof ConfigError ||
    error instanceof StorageError ||
    error instanceof CryptoError ||
    error instanceof RecordDamagedError;
  return isExplained ? usageError(error.message) : undefined;
}

/** Tells whether the list of processes shows the password of the database. */
export function showsPassword({ databaseUrl }: Config): boolean {
  if (!process.argv.some((arg) => databaseUrl !== "" && arg.endsWith(databaseUrl))) return false;
  const { password, searchParams } = new URL(databaseUrl);
  return password !== "" || searchParams.has("password");
}
