/** What the operator's verbs have in common: settings as of `qsp serve`, a store, and errors of its parts. */
import { type Config, ConfigError, listSettings, readConfig } from "../../config.ts";
import { CryptoError } from "../../crypto/crypto-error.ts";
import { type DatabaseLocation, describeLocation } from "../../database/database.ts";
import { RecordDamagedError, StorageError } from "../../database/store-error.ts";
import type { MasterKeySource } from "../../secrets/master-key.ts";
import { storeSettings } from "../../settings/store-settings.ts";
import { type CliError, usageError } from "../exit-codes.ts";
import type { Options, ParsedOptions } from "../options.ts";
import type { Verb, VerbInput } from "../verb.ts";
import { explainStoreFailure } from "./explain-failure.ts";

/** What a verb of the operator is given. */
export interface StoreVerbInput extends Pick<VerbInput, "operands" | "options"> {
  readonly config: Config;
  readonly location: DatabaseLocation;
  readonly masterKey: MasterKeySource;
}

/** A verb that works on a store itself, whether a server runs on it or not. */
export interface StoreVerb extends Pick<Verb, "name" | "operands" | "meaning" | "example"> {
  readonly options?: Options;
  /** Writes warnings to a log of its own. */
  readonly hasLog?: boolean;
  /** @returns the exit code: 0, or 1 if what it looked at is not in order */
  run(input: StoreVerbInput): Promise<number>;
}

/** Says that the list of processes shows the password of the database. */
export const passwordWarning =
  "every user of this machine can read the password in --database-url; give the URL in QSP_DATABASE_URL, or the password in PGPASSWORD or ~/.pgpass";

/** The settings that say which store it is; the help of a verb shows these alone. */
const storeSettingNames = ["data-dir", "database-url", "master-key-file"];

/** Makes a verb of the command line. */
export function toVerb(verb: StoreVerb): Verb {
  const settings = createSettingOptions();
  return {
    ...verb,
    options: verb.options ?? {},
    isLocal: true,
    settings,
    shownSettings: storeSettingNames,
    async run({ operands, options }) {
      const config = readConfig(toFlags(settings, options), process.env);
      const store = storeSettings(config);
      try {
        if (!verb.hasLog && showsPassword(config)) process.stderr.write(`qsp: warning: ${passwordWarning}\n`);
        return await verb.run({ operands, options, config, ...store });
      } catch (error) {
        throw explainStoreFailure(error, describeLocation(store.location));
      }
    },
    explain: explainOperatorError,
  };
}

/** The settings as options of a verb. Of one that is given twice the last counts. */
export function createSettingOptions(): Options {
  return Object.fromEntries(
    listSettings()
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

/** The settings of a command line, as `readConfig` takes them. */
export function toFlags(settings: Options, options: ParsedOptions): string[] {
  return Object.entries(settings).flatMap(([name, { value }]) => {
    if (!options.flag(name)) return [];
    return value === undefined ? [`--${name}`] : [`--${name}=${options.all(name).at(-1)}`];
  });
}

/** Explains what the operator can mend; undefined for a fault of ours. */
export function explainOperatorError(error: unknown): CliError | undefined {
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
