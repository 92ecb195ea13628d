/** Checks, before a verb runs, how it uses the files named on the command line. */
import { type BigIntStats, fstatSync, lstatSync, readFileSync, statSync } from "node:fs";
import { basename, dirname } from "node:path";
import { usageError } from "../exit-codes.ts";
import { maxWholeBytes } from "./read.ts";
import { findTarget } from "./write.ts";

/**
 * How a verb uses a file: "creates" a file that must not exist yet; "updates" one that it reads, replaces or removes;
 * "data" reads it if the text is @FILE, or - for standard input.
 */
export type FileUse = "reads" | "writes" | "creates" | "updates" | "data";

/** A file named by an option, an operand or a default. */
export interface UsedFile {
  /** The option or operand by which the verb looks it up. */
  readonly key: string;
  /** The name shown to the user: "--out" or "FILE". */
  readonly name: string;
  /** "-" is standard input or standard output. */
  readonly path: string;
  readonly use: FileUse;
  /** Whether only the owner may read it. */
  readonly isSecret?: boolean;
}

export const standard = "-";

export function isWritten({ use }: UsedFile): boolean {
  return use === "writes" || use === "creates" || use === "updates";
}

/**
 * Checks that no output overwrites an input, another output or a secret key, even through links and redirections, and
 * that new files do not exist yet.
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
  // It may be the only copy of the key. A device file is exempt: after the update it still contains its key.
  for (const { name, path, use } of files)
    if (use === "writes" && containsSecretKey(path))
      throw usageError(
        `${path} contains a secret key, which this would erase; name another file for ${name}`,
      );
}

/** PKCS#8 in PEM, even within JSON, a master key, or an age identity. */
const secretText = /PRIVATE KEY-----|^[0-9a-f]{64}\s*$|^AGE-SECRET-KEY-/im;
/** The start of PKCS#8 in DER, in hex: a sequence of a version and another sequence (RFC 5958, section 2). */
const secretDer = /^30(?:[0-7].|81..|82....)02010[01]30/;

function containsSecretKey(path: string): boolean {
  const found = path === standard ? undefined : statSync(path, { throwIfNoEntry: false });
  if (!found?.isFile() || found.size > maxWholeBytes) return false;
  const file = readFileSync(path);
  const text = file.toString("latin1");
  if (secretText.test(text) || secretDer.test(file.toString("hex", 0, 8))) return true;
  // One or more JWKs (RFC 7518, section 6; RFC 9964).
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

/** Resolves @FILE to its path; returns no file for literal data. */
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

/** A dangling link counts: it blocks creation too. */
function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

/**
 * Identifies the file that a write would change or create. Links, mounts and redirections give one file several
 * paths: a shell may have opened the file of another option as standard input or output.
 *
 * @returns undefined for targets without content to lose: a terminal, a pipe, /dev/null
 */
function findPlace(file: UsedFile): string | undefined {
  const { path } = file;
  if (path === standard) return identify(fstatSync(isWritten(file) ? 1 : 0, { bigint: true }));
  const found = statSync(path, { throwIfNoEntry: false, bigint: true });
  if (found !== undefined) return identify(found);
  const target = findTarget(path);
  // A missing directory is reported when the file is written.
  const directory = statSync(dirname(target), { throwIfNoEntry: false, bigint: true });
  return `${directory === undefined ? dirname(target) : `${directory.dev}:${directory.ino}`}/${basename(target)}`;
}

function identify(found: BigIntStats): string | undefined {
  return found.isFile() ? `${found.dev}:${found.ino}` : undefined;
}
