/** The setting type and the kinds of settings. */
import { isIP } from "node:net";

/** Says in one sentence what is wrong with a flag or variable. */
export class ConfigError extends Error {}

/** A setting. Its flag is `--name`, its variable QSP_NAME. */
export interface Setting<T> {
  /** Has no flag, because every user of the machine can read the flags of a program. */
  readonly isSecret?: boolean;
  readonly name: string;
  /** The default as a user would type it; empty for none. */
  readonly fallback: string;
  readonly meaning: string;
  /** The placeholder for the value in the help; without it the setting is a switch. */
  readonly valueName?: string;
  /** The allowed values, if they are a few words. */
  readonly values?: readonly string[];
  /** @throws ConfigError that says what would be valid */
  read(text: string): T;
}

/** Settings added by an extension. */
export interface AddedSettings {
  /** The setting after which these are listed. */
  readonly after: string;
  readonly settings: readonly Setting<unknown>[];
}

export function defineText(
  name: string,
  fallback: string,
  valueName: string,
  meaning: string,
): Setting<string> {
  const read = (value: string): string => {
    if (value === "" && fallback !== "") throw new ConfigError(`the value is empty`);
    return value;
  };
  return { name, fallback, valueName, meaning, read };
}

/** Defines a value that has no flag and is never quoted in a message. */
export function defineSecret(name: string, meaning: string): Setting<string> {
  const read = (value: string): string => {
    if (value === "" || /^[0-9a-f]{64}$/i.test(value)) return value;
    throw new ConfigError("must be 64 hexadecimal digits");
  };
  return { name, fallback: "", valueName: "digits", meaning, read, isSecret: true };
}

/** Defines a program and its arguments, which run without a shell; empty if not given. */
export function defineCommand(name: string, meaning: string): Setting<readonly string[]> {
  return { name, fallback: "", valueName: "command", meaning, read: splitWords };
}

/** Splits at white space, except between single or double quotes. Nothing else has a special meaning. */
function splitWords(text: string): readonly string[] {
  const words = text.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g);
  const found = [...words].map(([word]) => word.replaceAll(/"([^"]*)"|'([^']*)'/g, "$1$2"));
  if (text.replaceAll(/"[^"]*"|'[^']*'/g, "").match(/["']/))
    throw new ConfigError("contains a quote that is not closed");
  return found;
}

export function definePostgresUrl(name: string, meaning: string): Setting<string> {
  const read = (value: string): string => {
    // Do not quote the wrong value: it may contain a password.
    const isUrl = /^postgres(ql)?:\/\//.test(value) && URL.canParse(value);
    if (value === "" || isUrl) return value;
    throw new ConfigError("must be a URL such as postgres://user:password@host/database");
  };
  return { name, fallback: "", valueName: "url", meaning, read };
}

export function defineSwitch(name: string, meaning: string): Setting<boolean> {
  const read = (value: string): boolean => {
    if (value === "true" || value === "1") return true;
    if (value === "false" || value === "0" || value === "") return false;
    throw new ConfigError(`"${value}" is neither true nor false`);
  };
  return { name, fallback: "", meaning, read };
}

/** The valid values of a number, with both ends. */
interface Range {
  readonly min: number;
  readonly max: number;
}

export function defineInteger(
  name: string,
  { fallback, min, max }: Range & { readonly fallback: number },
  meaning: string,
): Setting<number> {
  const read = (value: string): number => {
    const number = Number(value);
    if (/^\d+$/.test(value) && number >= min && number <= max) return number;
    throw new ConfigError(`"${value}" is not a whole number from ${min} to ${max}`);
  };
  return { name, fallback: String(fallback), valueName: "number", meaning, read };
}

/** Defines a whole number; undefined if not given. */
export function defineOptionalInteger(
  name: string,
  range: Range,
  meaning: string,
): Setting<number | undefined> {
  const { read, ...setting } = defineInteger(name, { ...range, fallback: 0 }, meaning);
  return { ...setting, fallback: "", read: (value) => (value === "" ? undefined : read(value)) };
}

/** Defines a share from 0 to 1; undefined if not given. */
export function defineRatio(name: string, meaning: string): Setting<number | undefined> {
  const read = (value: string): number | undefined => {
    if (value === "") return undefined;
    if (/^(0|1|[01]?\.\d+)$/.test(value) && Number(value) <= 1) return Number(value);
    throw new ConfigError(`"${value}" is not a number from 0 to 1, such as 0.1`);
  };
  return { name, fallback: "", valueName: "ratio", meaning, read };
}

/** Defines the URL of a service; the message does not quote a wrong one, which may contain a password. */
export function defineServiceUrl(name: string, meaning: string): Setting<string> {
  const read = (value: string): string => {
    if (value === "") return value;
    const url = URL.canParse(value) ? new URL(value) : undefined;
    if (url === undefined || !/^https?:$/.test(url.protocol) || url.search !== "" || url.hash !== "")
      throw new ConfigError("must be a URL such as http://localhost:4317");
    if (url.username !== "" || url.password !== "")
      throw new ConfigError(
        "contains a password, which other users could see; use OTEL_EXPORTER_OTLP_HEADERS",
      );
    return value;
  };
  return { name, fallback: "", valueName: "url", meaning, read };
}

export function defineChoice<const T extends string>(
  name: string,
  fallback: T,
  values: readonly T[],
  meaning: string,
): Setting<T> {
  const read = (value: string): T => {
    const known = values.find((candidate) => candidate === value);
    if (known !== undefined) return known;
    throw new ConfigError(`"${value}" is unknown; use one of ${values.join(", ")}`);
  };
  return { name, fallback, valueName: values.length > 4 ? "level" : values.join("|"), values, meaning, read };
}

/**
 * Defines a list, separated by commas.
 *
 * @param isValid checks one element
 * @param fault says what is wrong with an invalid one
 */
function defineList(
  { name, valueName, meaning }: Required<Pick<Setting<unknown>, "name" | "valueName" | "meaning">>,
  isValid: (part: string) => boolean,
  fault: string,
): Setting<readonly string[]> {
  const read = (value: string): readonly string[] => {
    const parts = value === "" ? [] : value.split(",").map((part) => part.trim());
    const wrong = parts.find((part) => !isValid(part));
    if (wrong === undefined) return parts;
    throw new ConfigError(`"${wrong}" ${fault}`);
  };
  return { name, fallback: "", valueName, meaning, read };
}

export function defineNetworks(name: string, meaning: string): Setting<readonly string[]> {
  const fault = "is neither an address nor a network such as 10.0.0.0/8";
  return defineList({ name, valueName: "addresses", meaning }, isNetwork, fault);
}

export function defineOrigins(name: string, meaning: string): Setting<readonly string[]> {
  const fault = "is not an origin such as https://console.example.com";
  return defineList({ name, valueName: "origins", meaning }, isOrigin, fault);
}

export function defineOrigin(name: string, meaning: string): Setting<string> {
  const read = (value: string): string => {
    if (value === "" || isOrigin(value)) return value;
    throw new ConfigError(`"${value}" is not a URL with only a host, such as https://id.example.com`);
  };
  return { name, fallback: "", valueName: "url", meaning, read };
}

/** Returns whether a text is an origin as sent by browsers. Browsers never send a pattern. */
function isOrigin(text: string): boolean {
  return /^https?:\/\/[^*]+$/.test(text) && URL.canParse(text) && new URL(text).origin === text;
}

function isNetwork(text: string): boolean {
  const [address = "", prefix = "0", ...more] = text.split("/");
  const version = isIP(address);
  const most = version === 6 ? 128 : 32;
  return version !== 0 && more.length === 0 && /^\d{1,3}$/.test(prefix) && Number(prefix) <= most;
}

export function defineHostNames(name: string, meaning: string): Setting<readonly string[]> {
  const isValid = (part: string): boolean =>
    part === "*" || /^\.?[a-z0-9_-]+(\.[a-z0-9_-]+)*$|^\[[0-9a-f:.]+\]$/i.test(part);
  const fault = "is not a host name such as pqc.example.com or .example.com";
  return defineList({ name, valueName: "names", meaning }, isValid, fault);
}

export function defineNames(name: string, fallback: string, meaning: string): Setting<readonly string[]> {
  const read = (value: string): readonly string[] => {
    const names = value.split(",").map((part) => part.trim());
    if (names.some((part) => part === "")) throw new ConfigError(`"${value}" contains an empty name`);
    return names;
  };
  return { name, fallback, valueName: "names", meaning, read };
}
