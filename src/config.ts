/** Every setting of the server: its flag, variable, default, meaning and valid values. */
import { parseArgs } from "node:util";
import { generalSettings } from "./config/general-settings.ts";
import { limitSettings } from "./config/limit-settings.ts";
import { type AddedSettings, ConfigError, type Setting } from "./config/setting.ts";

const loopbackHosts = /^(localhost|127(\.\d{1,3}){3}|::1)$/;

export { maxHeaderMs, maxReceiveMs } from "./config/limit-settings.ts";
export { ConfigError };

/** All settings, in the order of the help text. */
const settings = { ...generalSettings, ...limitSettings } as const;

/** The settings of one start. */
export type Config = {
  readonly [Name in keyof typeof settings]: ReturnType<(typeof settings)[Name]["read"]>;
} & {
  /** Whether `auth` was set explicitly, so that its value is not the default. */
  readonly isAuthChosen: boolean;
  /** Returns the value of an extension's setting. */
  readonly valueFor: <T>(setting: Setting<T>) => T;
};

/**
 * Reads the settings, and checks those added by extensions. A flag takes precedence over its variable, and
 * the variable over the default.
 *
 * @throws ConfigError for an unknown flag, an invalid value, or incompatible values
 */
export function readConfig(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  added: readonly AddedSettings[] = [],
): Config {
  const flags = readFlags(args, added);
  const entries = Object.entries(settings).map(([key, setting]) => [
    key,
    readSetting<unknown>(setting, flags, env),
  ]);
  const isAuthChosen = (flags.auth ?? env[nameVariable("auth")]) !== undefined;
  const valueFor = <T>(setting: Setting<T>): T => readSetting(setting, flags, env);
  for (const setting of added.flatMap((one) => one.settings)) valueFor(setting);
  const config = Object.freeze({ ...Object.fromEntries(entries), isAuthChosen, valueFor }) as Config;
  checkMasterKey(config);
  for (const [flag, value] of [
    ["--tls-cert", config.tlsCert],
    ["--tls-key", config.tlsKey],
  ])
    if (value !== "" && value?.split(",").includes(""))
      throw new ConfigError(`${flag}: "${value}" contains an empty name`);
  if (listFiles(config.tlsCert).length !== listFiles(config.tlsKey).length)
    throw new ConfigError("--tls-key and --tls-cert need the same number of files, in the same order");
  if (config.auth === "open" && !loopbackHosts.test(config.host) && !config.openToNetwork) {
    throw new ConfigError(
      `--host ${config.host} would let anyone on the network call without a token; ` +
        "use --auth token, listen on 127.0.0.1, or use --danger-open-to-network",
    );
  }
  return config;
}

/** @throws ConfigError if the master key has two sources, or only its next version has one */
function checkMasterKey(config: Config): void {
  const { masterKey, masterKeyNext, masterKeyFile, masterKeyCommand, masterKeyNextCommand } = config;
  const sources = [masterKeyFile !== "", masterKey !== "", masterKeyCommand.length > 0];
  if (sources.filter(Boolean).length > 1)
    throw new ConfigError("use only one of --master-key-file, --master-key-command and QSP_MASTER_KEY");
  if (masterKeyNextCommand.length > 0 && masterKeyCommand.length === 0)
    throw new ConfigError("--master-key-next-command needs --master-key-command");
  // The next version of a key in a file is in a file too: a rotation would ignore this one and create another.
  if (masterKeyNext !== "" && masterKey === "")
    throw new ConfigError("QSP_MASTER_KEY_NEXT needs QSP_MASTER_KEY");
}

/** Splits a setting into file names, separated by commas. */
export function listFiles(text: string): string[] {
  return text.split(",").filter((path) => path !== "");
}

function readFlags(
  args: readonly string[],
  added: readonly AddedSettings[],
): Readonly<Record<string, string | boolean | undefined>> {
  const options = Object.fromEntries(
    listSettings(added)
      .filter(({ isSecret }) => isSecret !== true)
      .map((setting): [string, { type: "string" | "boolean" }] => [
        setting.name,
        { type: setting.valueName === undefined ? "boolean" : "string" },
      ]),
  );
  try {
    return parseArgs({ args: [...args], options, allowPositionals: false }).values;
  } catch (error) {
    // Node's message continues with advice for programs that take file names.
    const sentence = error instanceof Error ? (error.message.split(". ")[0] ?? "") : String(error);
    throw new ConfigError(`${sentence}; --help lists the settings`);
  }
}

function readSetting<T>(
  setting: Setting<T>,
  flags: Readonly<Record<string, string | boolean | undefined>>,
  env: NodeJS.ProcessEnv,
): T {
  const variable = nameVariable(setting.name);
  const given = flags[setting.name];
  const [source, value] =
    given !== undefined
      ? [`--${setting.name}`, String(given)]
      : [variable, env[variable] ?? setting.fallback];
  try {
    return setting.read(value);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ConfigError(`${source}${reason.startsWith("must ") ? "" : ":"} ${reason}`);
  }
}

/** The variable of a setting: "QSP_MAX_CALLS" for "max-calls". */
export function nameVariable(name: string): string {
  return `QSP_${name.replaceAll("-", "_").toUpperCase()}`;
}

/** All settings in the order of the help text, with extension settings inserted in their places. */
export function listSettings(added: readonly AddedSettings[] = []): readonly Setting<unknown>[] {
  const all: Setting<unknown>[] = Object.values(settings);
  // Settings inserted at the same place keep the order of their extensions.
  for (const { after, settings } of added.toReversed()) {
    const index = all.findIndex(({ name }) => name === after);
    if (index < 0) throw new Error(`${settings[0]?.name} is placed after ${after}, which is not a setting`);
    all.splice(index + 1, 0, ...settings);
  }
  return all;
}

/** The settings in the format of `--help`. */
export function describeSettings(added: readonly AddedSettings[] = []): string {
  return listSettings(added)
    .map(({ name, valueName, fallback, meaning, isSecret }) => {
      const flag = isSecret === true ? "" : `--${name}`;
      const usage = valueName === undefined || flag === "" ? flag : `${flag} <${valueName}>`;
      const suffix = fallback === "" || valueName === undefined ? "" : ` (${fallback})`;
      return `  ${usage.padEnd(32)} ${nameVariable(name).padEnd(28)} ${meaning}${suffix}`;
    })
    .join("\n");
}
