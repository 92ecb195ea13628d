/** Converts settings to verifiable log options. */
import { type Config, ConfigError } from "../../src/config.ts";
import { readFileWithin } from "../../src/read-file.ts";
import { describeSystemError } from "../../src/system-error.ts";
import { NoteError } from "./note.ts";
import { auditLogPublic, logOrigin, witnesses } from "./settings.ts";
import { formatVerifierKey, parseVerifierKey, type VerifierKey } from "./verifier-keys.ts";

/** Maximum witnesses, so that a note has room for their cosignatures and ours. */
const maxWitnesses = 16;
/** Maximum file size; real keys need less. */
const maxFileBytes = 256 * 1024;

/** Verifiable log options. */
export interface LogOptions {
  /** Prefix of the logs' origins; empty for a name derived from the store's key. */
  readonly origin: string;
  /** Whether anyone may read the audit entries themselves. */
  readonly areEntriesPublic: boolean;
  readonly witnesses: readonly VerifierKey[];
}

/**
 * Reads the verifiable log options.
 *
 * @throws ConfigError if the witness file is not valid
 */
export function logSettings({ valueFor }: Pick<Config, "valueFor">): LogOptions {
  const path = valueFor(witnesses);
  return {
    origin: valueFor(logOrigin),
    areEntriesPublic: valueFor(auditLogPublic),
    witnesses: path === "" ? [] : readWitnesses(path),
  };
}

/** Reads a file with one verifier key per line. Empty lines and lines that start with # are ignored. */
function readWitnesses(path: string): VerifierKey[] {
  const keys = readText(path)
    .split(/\r?\n/)
    .map((text, i) => ({ text: text.trim(), line: i + 1 }))
    .filter(({ text }) => text !== "" && !text.startsWith("#"))
    .map(({ text, line }) => readWitness(path, text, line));
  if (keys.length > maxWitnesses)
    throw new ConfigError(`--witnesses: ${path} has ${keys.length} keys; the limit is ${maxWitnesses}`);
  if (new Set(keys.map(formatVerifierKey)).size < keys.length)
    throw new ConfigError(`--witnesses: ${path} contains a duplicate key`);
  return keys;
}

function readWitness(path: string, text: string, line: number): VerifierKey {
  try {
    const key = parseVerifierKey(text);
    if (key.type.endsWith("cosignature")) return key;
    throw new NoteError(`is a key of type ${key.type}, which cannot cosign`);
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
