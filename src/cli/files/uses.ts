/** What verbs do with the files that a command line names. It is checked before a verb runs. */
import { type BigIntStats, fstatSync, lstatSync, readFileSync, statSync } from "node:fs";
import { basename, dirname } from "node:path";
import { usageError } from "../exit-codes.ts";
import { maxWholeBytes } from "./read.ts";
import { findTarget } from "./write.ts";

/**
 * What a verb does with a file: "creates" one that must not exist, and "updates" one that it reads, replaces or removes.
 * "data" reads it if the text is @FILE or - for standard input.
 */
export type FileUse = "reads" | "writes" | "creates" | "updates" | "data";

/** A file that a command line names, by an option, an operand or a default. */
export interface UsedFile {
  /** How the verb finds it: the name of the option, or the operand. */
  readonly key: string;
  /** How the user knows it: "--out" or "FILE". */
  readonly name: string;
  /** "-" is standard input or standard output. */
  readonly path: string;
  readonly use: FileUse;
  /** Only its owner may read it. */
  readonly isSecret?: boolean;
}

/** Standard input or standard output. */
export const standard = "-";

/** Tells whether a verb writes a file. */
export function isWritten({ use }: UsedFile): boolean {
  return use === "writes" || use === "creates" || use === "updates";
}

/**
 * Checks that no output replaces an input, another output or a secret key, also through links and redirections, and that
 * new files do not exist yet.
 *
 * @throws CliError
 */
export function checkFiles(given: readonly UsedFile[]): void {
  const files = given.flatMap(resolveData);
  requireOne(files, "standard input can be read only once", ({ use }) => use === "reads" || use === "data");
  requireOne(files, "standard output has room for one file", isWritten);
  for (const { name, path, use } of files) {
    if (path === standard && use === "updates") throw usageError(`${name} - is not a file; name one`);
    if (path !== standard && use === "creates" && exists(path))
      throw usageError(`${path} already exists; name another file for ${name}`);
  }
  const places = files.map((file) => ({ file, place: findPlace(file) }));
  for (const [i, output] of places.entries())
    for (const [j, other] of places.entries())
      if (i !== j && isWritten(output.file) && output.place !== undefined && output.place === other.place)
        throw collision(output.file, other.file);
  // No other copy may exist. The file of a device, which is updated, has its key afterwards, too.
  for (const { name, path, use } of files)
    if (use === "writes" && containsSecretKey(path))
      throw usageError(
        `${path} contains a secret key, which this would erase; name another file for ${name}`,
      );
}

/** PKCS#8 in PEM, also within JSON; a master key. */
const secretText = /PRIVATE KEY-----|^[0-9a-f]{64}\s*$/i;
/** PKCS#8 in DER, in hexadecimal digits: a sequence of a version and another sequence (RFC 5958, section 2). */
const secretDer = /^30(?:[0-7].|81..|82....)02010[01]30/;

function containsSecretKey(path: string): boolean {
  const found = path === standard ? undefined : statSync(path, { throwIfNoEntry: false });
  if (!found?.isFile() || found.size > maxWholeBytes) return false;
  const file = readFileSync(path);
  const text = file.toString("latin1");
  if (secretText.test(text) || secretDer.test(file.toString("hex", 0, 8))) return true;
  // A JWK, or several (RFC 7518, section 6; RFC 9964).
  return /"kty"\s*:/.test(text) && /"(priv|d|k)"\s*:/.test(text);
}

function collision(output: UsedFile, other: UsedFile): Error {
  if (output.path === standard)
    return usageError(
      `${output.name} - would write into the file of ${other.name}; redirect standard output to another file`,
    );
  const remedy = `name another file for ${output.name}`;
  return usageError(
    isWritten(other)
      ? `${output.name} and ${other.name} are one file, ${output.path}; ${remedy}`
      : `${output.name} would replace ${output.path}, the input ${other.name}; ${remedy}`,
  );
}

/** The file that a text with @ names; none for a text that is the data itself. */
function resolveData(file: UsedFile): readonly UsedFile[] {
  if (file.use !== "data" || file.path === standard) return [file];
  return file.path.startsWith("@") ? [{ ...file, path: file.path.slice(1) }] : [];
}

function requireOne(files: readonly UsedFile[], sentence: string, isOne: (file: UsedFile) => boolean): void {
  const [first, second] = files.filter((file) => file.path === standard && isOne(file));
  if (first !== undefined && second !== undefined)
    throw usageError(
      `${sentence}, and ${first.name} and ${second.name} are both -; name a file for one of them`,
    );
}

/** A link to nothing is in the way as well. */
function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

/**
 * Identifies the file that a write would change, or the name that it would create. Links, mounts and redirections give a
 * file several paths: a shell may have opened the file of another option as standard input or standard output.
 *
 * @returns undefined for what holds nothing that a write could change: a terminal, a pipe, /dev/null
 */
function findPlace(file: UsedFile): string | undefined {
  const { path } = file;
  if (path === standard) return identify(fstatSync(isWritten(file) ? 1 : 0, { bigint: true }));
  const found = statSync(path, { throwIfNoEntry: false, bigint: true });
  if (found !== undefined) return identify(found);
  const target = findTarget(path);
  // A directory that is missing is reported when the file is written.
  const directory = statSync(dirname(target), { throwIfNoEntry: false, bigint: true });
  return `${directory === undefined ? dirname(target) : `${directory.dev}:${directory.ino}`}/${basename(target)}`;
}

function identify(found: BigIntStats): string | undefined {
  return found.isFile() ? `${found.dev}:${found.ino}` : undefined;
}
