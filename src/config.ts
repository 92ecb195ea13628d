/** Every setting of the server: its flag, its variable, its default, what it means, and what it may be. */
import { isIP } from "node:net";
import { parseArgs } from "node:util";

/** Says what is wrong with a flag or a variable, in a sentence. */
export class ConfigError extends Error {}

/** One setting. Its flag is `--name`, its variable QSP_NAME. */
export interface Setting<T> {
  /** Has no flag: everybody on the machine can read the flags of a program. */
  readonly isSecret?: boolean;
  readonly name: string;
  /** The default as a person would type it; empty for none. */
  readonly fallback: string;
  readonly meaning: string;
  /** Stands in the help for the value; without it the setting is a switch. */
  readonly valueName?: string;
  /** What the value may be, where it is one of a few words. */
  readonly values?: readonly string[];
  /** @throws ConfigError saying what would be right */
  read(text: string): T;
}

const loopbackHosts = /^(localhost|127(\.\d{1,3}){3}|::1)$/;

/** Milliseconds for the headers of a request to arrive; no setting. */
export const maxHeaderMs = 15_000;
/** Milliseconds for the body of a unary request to arrive; no setting. */
export const maxReceiveMs = 30_000;

/** All settings, in the order in which the help shows them. */
const settings = {
  host: text("host", "127.0.0.1", "address", "Address to listen on."),
  port: integer("port", "8080", 0, 65_535, "Port to listen on; 0 picks a free one and prints it."),
  openToNetwork: flag(
    "danger-open-to-network",
    "Allows an address other than loopback while anyone may call without a token.",
  ),
  dataDir: text("data-dir", "./data", "directory", "Where the store and the master key are."),
  databaseUrl: postgresUrl(
    "database-url",
    "PostgreSQL 15 or newer, as postgres://user:password@host/database; by default a file in the data directory.",
  ),
  masterKeyFile: text(
    "master-key-file",
    "",
    "file",
    "The key that seals all others, 64 hexadecimal digits; by default master.key in the data directory.",
  ),
  masterKey: secret("master-key", "The key itself, instead of a file."),
  masterKeyNext: secret("master-key-next", "The key that it is being changed to; see qsp master-key rotate."),
  services: list("services", "all", "Which services to run, by package: all, or names joined by commas."),
  auth: readChoice(
    "auth",
    "open",
    ["open", "token"],
    "Who may call: open lets anyone, and tokens guard what always needs one; token lets users (qsp user add).",
  ),
  tlsCert: text(
    "tls-cert",
    "",
    "files",
    "Certificates in PEM for TLS 1.3, joined by commas; of several kinds each client gets the one it prefers.",
  ),
  tlsKey: text("tls-key", "", "files", "Their keys, in the same order."),
  cryptoProvider: readChoice(
    "crypto-provider",
    "openssl",
    ["openssl", "noble"],
    "Who computes: openssl (native, fast) or noble (JavaScript, portable).",
  ),
  maxMetadataBytes: integer(
    "max-metadata-bytes",
    "16384",
    1024,
    1_048_576,
    "Bytes of metadata a request may have.",
  ),
  maxMessageBytes: integer(
    "max-message-bytes",
    "4194304",
    1024,
    1_073_741_824,
    "Bytes a body, or a message of a stream, may have.",
  ),
  maxMessageElements: integer(
    "max-message-elements",
    "20000",
    100,
    10_000_000,
    "Values a message may have: JSON values, or Protobuf fields and list elements.",
  ),
  maxUnknownFields: integer(
    "max-unknown-fields",
    "1000",
    0,
    10_000_000,
    "Protobuf fields a message may have that its type does not declare.",
  ),
  maxCallMs: integer(
    "max-call-ms",
    "30000",
    1,
    86_400_000,
    "Milliseconds a unary call may take; a caller may set less.",
  ),
  maxDrainMs: integer(
    "max-drain-ms",
    "30000",
    0,
    86_400_000,
    "Milliseconds that running calls get when the server stops.",
  ),
  maxCalls: integer("max-calls", "1000", 1, 1_000_000, "Unary calls at a time; more are refused."),
  maxStreams: integer("max-streams", "10000", 1, 1_000_000, "Streams at a time; more are refused."),
  maxCallsPerUser: integer(
    "max-calls-per-user",
    "250",
    0,
    1_000_000,
    "Unary calls at a time of each user or address; 0 for no limit. Not with --auth open.",
  ),
  maxStreamsPerUser: integer(
    "max-streams-per-user",
    "1000",
    0,
    1_000_000,
    "Streams at a time of each user or address; 0 for no limit. Not with --auth open.",
  ),
  maxConnections: integer(
    "max-connections",
    "20000",
    1,
    1_000_000,
    "Connections at a time; more are closed.",
  ),
  maxBufferedBytes: integer(
    "max-buffered-bytes",
    "268435456",
    1_048_576,
    1_099_511_627_776,
    "Bytes that all unfinished requests may hold in memory.",
  ),
  maxBufferedBytesPerClient: integer(
    "max-buffered-bytes-per-client",
    "67108864",
    1_048_576,
    1_099_511_627_776,
    "Bytes that the unfinished requests, or the unread responses, of one user or address may hold.",
  ),
  maxWriteMs: integer(
    "max-write-ms",
    "20000",
    100,
    86_400_000,
    "Milliseconds that a response may wait for a client that reads nothing; a large piece gets a second more for each 32 KB.",
  ),
  maxRecordsPerUser: integer(
    "max-records-per-user",
    "100000",
    0,
    1_000_000_000,
    "Records of each kind that a user may have; 0 for any. Ten times as many for all callers of --auth open.",
  ),
  maxTunnelsPerUser: integer(
    "max-tunnels-per-user",
    "1000",
    0,
    65_533,
    "Tunnels, and so addresses, that a user may have; 0 for any. Ten times as many with --auth open.",
  ),
  maxIdempotencyKeysPerUser: integer(
    "max-idempotency-keys-per-user",
    "100000",
    0,
    1_000_000_000,
    "Idempotency keys that a user may use in 24 hours; 0 for any. Ten times as many with --auth open.",
  ),
  maxChallengesPerDevice: integer(
    "max-challenges-per-device",
    "20",
    0,
    1_000_000,
    "Open challenges of a device that one client network may have; 0 for any.",
  ),
  maxChallengesPerClient: integer(
    "max-challenges-per-client",
    "1000",
    0,
    1_000_000,
    "Open challenges of all devices that one client network may have; 0 for any.",
  ),
  maxCallsPerSecond: integer(
    "max-calls-per-second",
    "500",
    0,
    1_000_000,
    "Calls a second of each user or address, twice as many at once; 0 for any. Not with --auth open.",
  ),
  maxQueueMs: integer(
    "max-queue-ms",
    "1000",
    1,
    86_400_000,
    "Milliseconds that a call may have to wait before it is computed; beyond that it is refused.",
  ),
  maxBacklogMs: integer(
    "max-backlog-ms",
    "10000",
    1,
    86_400_000,
    "The same for each piece of a batch, a stream or a chain, and for log-ins of one network.",
  ),
  maxPasswordChecks: integer(
    "max-password-checks",
    "2",
    1,
    64,
    "Passwords that are checked at a time; each takes 128 MiB of memory and a thread.",
  ),
  maxFailedLogins: integer(
    "max-failed-logins",
    "10",
    1,
    1_000_000,
    "Log-ins that may fail in a minute, for each name, and for each address with its /64, /56 and /48 of IPv6.",
  ),
  trustedProxies: networks(
    "trusted-proxies",
    "Proxies whose X-Forwarded-For is believed: addresses, networks as 10.0.0.0/8, joined by commas.",
  ),
  allowedHosts: hostNames(
    "allowed-hosts",
    "Host names to answer for, joined by commas; .example.com for all below it, * for any. With --auth open: besides those of loopback.",
  ),
  metrics: readChoice(
    "metrics",
    "auto",
    ["auto", "open", "token", "off"],
    "Who may read /metrics: open for anyone, token for auditors and admins; auto is open with --auth open, and token with --auth token.",
  ),
  corsOrigins: origins(
    "cors-origins",
    "Origins whose pages may call, as https://console.example.com, joined by commas; by default none but our own.",
  ),
  logLevel: readChoice(
    "log-level",
    "info",
    ["trace", "debug", "info", "warn", "error", "fatal", "silent"],
    "What to log, as JSON on standard error.",
  ),
} as const;

/** The settings of one start. */
export type Config = {
  readonly [Name in keyof typeof settings]: ReturnType<(typeof settings)[Name]["read"]>;
};

/**
 * Reads the settings: a flag goes before its variable, the variable before the default.
 *
 * @throws ConfigError for an unknown flag, a bad value, or values that do not go together.
 */
export function readConfig(args: readonly string[], env: NodeJS.ProcessEnv): Config {
  const flags = readFlags(args);
  const entries = Object.entries(settings).map(([key, setting]) => [key, readSetting(setting, flags, env)]);
  const config = Object.freeze(Object.fromEntries(entries)) as Config;
  if (config.masterKey !== "" && config.masterKeyFile !== "")
    throw new ConfigError("give --master-key-file or QSP_MASTER_KEY, not both");
  for (const [flag, value] of [
    ["--tls-cert", config.tlsCert],
    ["--tls-key", config.tlsKey],
  ])
    if (value !== "" && value?.split(",").includes(""))
      throw new ConfigError(`${flag}: "${value}" has an empty name`);
  if (listFiles(config.tlsCert).length !== listFiles(config.tlsKey).length)
    throw new ConfigError("give as many files to --tls-key as to --tls-cert, in the same order");
  if (config.auth === "open" && !loopbackHosts.test(config.host) && !config.openToNetwork) {
    throw new ConfigError(
      `--host ${config.host} would let anyone on the network call without a token; ` +
        "listen on 127.0.0.1, or say --danger-open-to-network",
    );
  }
  return config;
}

/** The files that a setting names, joined by commas. */
export function listFiles(text: string): string[] {
  return text.split(",").filter((path) => path !== "");
}

function readFlags(args: readonly string[]): Readonly<Record<string, string | boolean | undefined>> {
  const options = Object.fromEntries(
    listSettings()
      .filter(({ isSecret }) => isSecret !== true)
      .map((setting): [string, { type: "string" | "boolean" }] => [
        setting.name,
        { type: setting.valueName === undefined ? "boolean" : "string" },
      ]),
  );
  try {
    return parseArgs({ args: [...args], options, allowPositionals: false }).values;
  } catch (error) {
    // Node's sentence goes on with advice for programs that take file names.
    const sentence = error instanceof Error ? (error.message.split(". ")[0] ?? "") : String(error);
    throw new ConfigError(`${sentence}; --help lists what there is`);
  }
}

function readSetting(
  setting: Setting<unknown>,
  flags: Readonly<Record<string, string | boolean | undefined>>,
  env: NodeJS.ProcessEnv,
): unknown {
  const variable = nameVariable(setting.name);
  const given = flags[setting.name];
  const [source, value] =
    given !== undefined
      ? [`--${setting.name}`, String(given)]
      : [variable, env[variable] ?? setting.fallback];
  try {
    return setting.read(value);
  } catch (error) {
    throw new ConfigError(`${source}: ${error instanceof Error ? error.message : error}`);
  }
}

/** The variable of a setting: "QSP_MAX_CALLS" of "max-calls". */
export function nameVariable(name: string): string {
  return `QSP_${name.replaceAll("-", "_").toUpperCase()}`;
}

/** All settings, in the order in which the help shows them. */
export function listSettings(): readonly Setting<unknown>[] {
  return Object.values(settings);
}

/** The settings as `--help` shows them. */
export function describeSettings(): string {
  return listSettings()
    .map(({ name, valueName, fallback, meaning, isSecret }) => {
      const flag = isSecret === true ? "" : `--${name}`;
      const usage = valueName === undefined || flag === "" ? flag : `${flag} <${valueName}>`;
      const suffix = fallback === "" || valueName === undefined ? "" : ` (${fallback})`;
      return `  ${usage.padEnd(32)} ${nameVariable(name).padEnd(28)} ${meaning}${suffix}`;
    })
    .join("\n");
}

function text(name: string, fallback: string, valueName: string, meaning: string): Setting<string> {
  const read = (value: string): string => {
    if (value === "" && fallback !== "") throw new ConfigError(`"" is empty; it must name something`);
    return value;
  };
  return { name, fallback, valueName, meaning, read };
}

/** A value that is no flag, and that no message repeats. */
function secret(name: string, meaning: string): Setting<string> {
  const read = (value: string): string => {
    if (value === "" || /^[0-9a-f]{64}$/i.test(value)) return value;
    throw new ConfigError("is no key: expected 64 hexadecimal digits");
  };
  return { name, fallback: "", valueName: "digits", meaning, read, isSecret: true };
}

function postgresUrl(name: string, meaning: string): Setting<string> {
  const read = (value: string): string => {
    // What is wrong is not repeated: it may hold a password.
    const isUrl = /^postgres(ql)?:\/\//.test(value) && URL.canParse(value);
    if (value === "" || isUrl) return value;
    throw new ConfigError("is no URL such as postgres://user:password@host/database");
  };
  return { name, fallback: "", valueName: "url", meaning, read };
}

function flag(name: string, meaning: string): Setting<boolean> {
  const read = (value: string): boolean => {
    if (value === "true" || value === "1") return true;
    if (value === "false" || value === "0" || value === "") return false;
    throw new ConfigError(`"${value}" is neither true nor false`);
  };
  return { name, fallback: "", meaning, read };
}

function integer(name: string, fallback: string, min: number, max: number, meaning: string): Setting<number> {
  const read = (value: string): number => {
    const number = Number(value);
    if (/^\d+$/.test(value) && number >= min && number <= max) return number;
    throw new ConfigError(`"${value}" is not a whole number from ${min} to ${max}`);
  };
  return { name, fallback, valueName: "number", meaning, read };
}

function readChoice<const T extends string>(
  name: string,
  fallback: T,
  values: readonly T[],
  meaning: string,
): Setting<T> {
  const read = (value: string): T => {
    const known = values.find((candidate) => candidate === value);
    if (known !== undefined) return known;
    throw new ConfigError(`"${value}" is not known; known are ${values.join(", ")}`);
  };
  return { name, fallback, valueName: values.length > 4 ? "level" : values.join("|"), values, meaning, read };
}

function networks(name: string, meaning: string): Setting<readonly string[]> {
  const read = (value: string): readonly string[] => {
    const parts = value === "" ? [] : value.split(",").map((part) => part.trim());
    const wrong = parts.find((part) => !isNetwork(part));
    if (wrong === undefined) return parts;
    throw new ConfigError(`"${wrong}" is neither an address nor a network such as 10.0.0.0/8`);
  };
  return { name, fallback: "", valueName: "addresses", meaning, read };
}

function origins(name: string, meaning: string): Setting<readonly string[]> {
  const read = (value: string): readonly string[] => {
    const parts = value === "" ? [] : value.split(",").map((part) => part.trim());
    const wrong = parts.find((part) => !isOrigin(part));
    if (wrong === undefined) return parts;
    throw new ConfigError(`"${wrong}" is no origin such as https://console.example.com`);
  };
  return { name, fallback: "", valueName: "origins", meaning, read };
}

/** What a browser can send as the origin of a page; a pattern would never be it. */
function isOrigin(text: string): boolean {
  return /^https?:\/\/[^*]+$/.test(text) && URL.canParse(text) && new URL(text).origin === text;
}

function isNetwork(text: string): boolean {
  const [address = "", prefix = "0", ...more] = text.split("/");
  const version = isIP(address);
  const most = version === 6 ? 128 : 32;
  return version !== 0 && more.length === 0 && /^\d{1,3}$/.test(prefix) && Number(prefix) <= most;
}

function hostNames(name: string, meaning: string): Setting<readonly string[]> {
  const read = (value: string): readonly string[] => {
    const parts = value === "" ? [] : value.split(",").map((part) => part.trim());
    const wrong = parts.find(
      (part) => part !== "*" && !/^\.?[a-z0-9_-]+(\.[a-z0-9_-]+)*$|^\[[0-9a-f:.]+\]$/i.test(part),
    );
    if (wrong === undefined) return parts;
    throw new ConfigError(`"${wrong}" is not a host name such as pqc.example.com or .example.com`);
  };
  return { name, fallback: "", valueName: "names", meaning, read };
}

function list(name: string, fallback: string, meaning: string): Setting<readonly string[]> {
  const read = (value: string): readonly string[] => {
    const names = value.split(",").map((part) => part.trim());
    if (names.some((part) => part === "")) throw new ConfigError(`"${value}" has an empty name`);
    return names;
  };
  return { name, fallback, valueName: "names", meaning, read };
}
