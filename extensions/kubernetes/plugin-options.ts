/** Command-line options of `qsp k8s-kms`. */
import { readFileSync } from "node:fs";
import type { Options, ParsedOptions } from "../../src/cli/command-line/options.ts";
import { readNameAndFile } from "../../src/cli/connection/credentials.ts";
import { usageError } from "../../src/cli/exit-codes.ts";
import type { SocketPlace } from "./socket.ts";

const logLevels = ["debug", "info", "warn", "error"] as const;
const defaultServerMs = 10_000;

/** In the order of the help text. */
export const pluginOptions = {
  socket: { value: "PATH", meaning: "Unix socket to listen on, such as /run/qsp/kms.sock", offers: "files" },
  key: { value: "KEY", meaning: "KEM key that encrypts: name/etcd, or user/ada/name/etcd for a granted key" },
  group: { value: "GROUP", meaning: "Group whose members may use the socket too; default: only this user" },
  username: { value: "USERNAME", meaning: "User to log in as; the plugin renews its token itself" },
  "password-file": {
    value: "FILE",
    meaning: "File with the password of --username on its first line",
    file: "reads",
  },
  "metrics-port": { value: "PORT", meaning: "Port on 127.0.0.1 for Prometheus metrics; default: none" },
  "log-level": {
    value: "LEVEL",
    meaning: "Minimum log level: debug, info (default), warn or error",
    offers: logLevels,
  },
} as const satisfies Options;

/** Parsed options. */
export interface PluginOptions {
  readonly place: SocketPlace;
  readonly keyName: string;
  /** Undefined if the token comes from --token-file, QSP_TOKEN or qsp login. */
  readonly login: { readonly name: string; readonly file: string } | undefined;
  readonly metricsPort: number | undefined;
  readonly logLevel: (typeof logLevels)[number];
  /** Timeout of a key service call in milliseconds. */
  readonly maxServerMs: number;
}

/**
 * Parses the options.
 *
 * @throws CliError
 */
export function readPluginOptions(options: ParsedOptions): PluginOptions {
  const group = options.text("group");
  const seconds = options.whole("timeout", 1, 86_400);
  const level = options.text("log-level") ?? "info";
  const logLevel = logLevels.find((known) => known === level);
  if (logLevel === undefined)
    throw usageError(`--log-level "${level}" is unknown; use one of ${logLevels.join(", ")}`);
  return {
    place: { path: options.need("socket"), groupId: group === undefined ? undefined : findGroupId(group) },
    keyName: checkKeyName(options.need("key")),
    login: readNameAndFile(options, "username", "password-file"),
    metricsPort: options.whole("metrics-port", 0, 65_535),
    logLevel,
    maxServerMs: seconds === undefined ? defaultServerMs : seconds * 1000,
  };
}

/**
 * Finds a group ID in /etc/group. A number is used as the ID.
 *
 * @throws CliError
 */
export function findGroupId(nameOrId: string): number {
  // 2^32 - 1 means "no change" in chown(2).
  if (/^\d{1,10}$/.test(nameOrId) && Number(nameOrId) < 2 ** 32 - 1) return Number(nameOrId);
  for (const line of readFileSync("/etc/group", "utf8").split("\n")) {
    const [name, , id = ""] = line.split(":");
    if (name === nameOrId && /^\d+$/.test(id)) return Number(id);
  }
  throw usageError(`--group "${nameOrId}" is not a group in /etc/group; use an existing group or a group ID`);
}

/**
 * Validates --key.
 *
 * @returns the key in the key service's form: "name/<name>" or "user/<user>/name/<name>"
 * @throws CliError
 */
function checkKeyName(text: string): string {
  const [, name = ""] = /^(?:user\/[^/]{1,255}\/)?name\/([\w./-]{1,255})$/.exec(text) ?? [];
  if (name === "")
    throw usageError(
      `--key "${text}" is not a key name; use name/etcd, for example, or user/ada/name/etcd for another user's key`,
    );
  if (/\/[1-9]\d*$/.test(name))
    throw usageError(
      `--key "${text}" names a single version; leave out the version, so that rotations take effect`,
    );
  return text;
}
