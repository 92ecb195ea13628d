/** Converts settings to the options of verifiable logs. */
import { type Config, ConfigError } from "../../src/config.ts";
import { readFileWithin } from "../../src/read-file.ts";
import { describeSystemError } from "../../src/system-error.ts";
import { NoteError } from "./note.ts";
import { auditLogPublic, logOrigin, witnesses } from "./settings.ts";
import { formatVerifierKey, parseVerifierKey, type VerifierKey } from "./verifier-keys.ts";

/** The most witnesses: their cosignatures and ours fit into a note. */
const maxWitnesses = 16;
/** More than so many keys have. */
const maxFileBytes = 256 * 1024;

/** How verifiable logs present themselves. */
export interface LogOptions {
  /** The origins of logs begin with this; empty for a name made from the key of the store. */
  readonly origin: string;
  /** Whether anyone may read the audit entries themselves. */
  readonly areEntriesPublic: boolean;
  readonly witnesses: readonly VerifierKey[];
}

/** Reads the options of verifiable logs. @throws ConfigError for a file of witnesses that is not valid */
export function logSettings({ valueFor }: Pick<Config, "valueFor">): LogOptions {
  const path = valueFor(witnesses);
  return {
    origin: valueFor(logOrigin),
    areEntriesPublic: valueFor(auditLogPublic),
    witnesses: path === "" ? [] : readWitnesses(path),
  };
}

/** Reads a file with a verifier key in each line. Empty lines and lines that begin with # are ignored. */
function readWitnesses(path: string): VerifierKey[] {
  const keys = readText(path)
    .split(/\r?\n/)
    .map((text, i) => ({ text: text.trim(), line: i + 1 }))
    .filter(({ text }) => text !== "" && !text.startsWith("#"))
    .map(({ text, line }) => readWitness(path, text, line));
  if (keys.length > maxWitnesses)
    throw new ConfigError(`--witnesses: ${path} has ${keys.length} keys; the limit is ${maxWitnesses}`);
  if (new Set(keys.map(formatVerifierKey)).size < keys.length)
    throw new ConfigError(`--witnesses: ${path} has a key twice`);
  return keys;
}

function readWitness(path: string, text: string, line: number): VerifierKey {
  try {
    const key = parseVerifierKey(text);
    if (key.type.endsWith("cosignature")) return key;
    throw new NoteError(`is a key of type ${key.type}, which does not cosign`);
  } catch (error) {
    if (!(error instanceof NoteError)) throw error;
    throw new ConfigError(`--witnesses: line ${line} of ${path} ${error.message}`);
  }
}

function readText(path: string): string {
  try {
    return readFileWithin(path, maxFileBytes).toString();
  } catch (error) {
    throw new ConfigError(`--witnesses: ${path} cannot be read: ${describeSystemError(error)}`);
  }
}
