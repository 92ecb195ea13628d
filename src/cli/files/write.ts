/** Writes files so that there is always a complete one: a draft beside it takes its place. */
import { randomBytes } from "node:crypto";
import {
  accessSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  openSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { makeDirectories } from "../../make-directories.ts";
import { describeSystemError, saysDiskFull } from "../../system-error.ts";
import { type CliError, diskFullError, usageError } from "../exit-codes.ts";

/** Who may read a file. A private file is readable by its owner alone, whatever was there before. */
export type FileAccess = "public" | "private";

/**
 * Creates a file. Its name is taken first, so that nothing is overwritten.
 *
 * @throws CliError if it exists, also as a link to nothing
 */
export function createFile(path: string, content: string | Uint8Array, access: FileAccess): void {
  explain(path, () => closeSync(openSync(path, "wx", 0o600)));
  try {
    replaceRegular({ path, target: path, found: undefined }, content, access);
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  }
}

/**
 * Writes a file: creates it, or replaces it. It is written through a link, and an existing file keeps its mode and, where
 * the system allows it, its owner. What is not a file, such as a pipe or a terminal, is written as it is.
 *
 * @throws CliError
 */
export function writeFile(path: string, content: string | Uint8Array, access: FileAccess): void {
  const found = explain(path, () => statSync(path, { throwIfNoEntry: false }));
  if (found?.isDirectory()) throw usageError(`${path} is a directory; name a file`);
  if (isOpenFile(path) || (found !== undefined && !found.isFile())) return writeInPlace(path, content);
  // A rename would replace a file that its user has protected.
  if (found !== undefined) explain(path, () => accessSync(path, constants.W_OK));
  replaceRegular({ path, target: findTarget(path), found }, content, access);
}

/** Replaces a private file, and creates the directories above it. @throws CliError */
export function replacePrivateFile(path: string, content: string): void {
  try {
    makeDirectories(dirname(path));
  } catch (error) {
    const reason = `the directory ${dirname(path)} cannot be created: ${describeSystemError(error)}`;
    const sentence = `${path} cannot be written: ${reason}`;
    throw saysDiskFull(error) ? diskFullError(sentence) : usageError(sentence);
  }
  writeFile(path, content, "private");
}

/** The names of files that are open: /dev/stdout, /dev/fd/3. A rename would replace the name and not the open file. */
export function isOpenFile(path: string): boolean {
  return /^\/(?:dev\/(?:stdin|stdout|stderr|fd\/\d+)|proc\/(?:self|\d+)\/fd\/\d+)$/.test(resolve(path));
}

/** The most links from one to the next; more are a circle (path_resolution(7)). */
const maxLinks = 40;

/** Finds the path of a file behind links; of a file that does not exist yet, where it would be created. */
export function findTarget(path: string): string {
  // The system's own answer also has the case of the letters, where it does not matter.
  const found = findReal(path);
  if (found !== undefined) return found;
  let at = resolve(path);
  for (let links = 0; links < maxLinks; links += 1) {
    const link = readLink(at);
    // A missing directory is reported when the file is written.
    const directory = findReal(dirname(at)) ?? dirname(at);
    if (link === undefined) return join(directory, basename(at));
    at = resolve(directory, link);
  }
  throw usageError(`${path} is a link to itself`);
}

function readLink(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

function findReal(path: string): string | undefined {
  try {
    return realpathSync.native(path);
  } catch {
    return undefined;
  }
}

function writeInPlace(path: string, content: string | Uint8Array): void {
  explain(path, () => {
    const file = openSync(path, "w");
    try {
      writeAll(file, content);
    } finally {
      closeSync(file);
    }
  });
}

/** A file to replace. */
interface Place {
  /** As the user wrote it, for errors. */
  readonly path: string;
  /** Where the file is, behind links. */
  readonly target: string;
  /** The file that is there, whose mode and owner remain. */
  readonly found: Stats | undefined;
}

/** Puts a draft in the place of a file. */
function replaceRegular(
  { path, target, found }: Place,
  content: string | Uint8Array,
  access: FileAccess,
): void {
  // A short name: that of the file may already be as long as a name may be.
  const draft = join(dirname(target), `.qsp-${randomBytes(8).toString("hex")}.draft`);
  explain(
    path,
    () => {
      try {
        const file = openSync(draft, "wx", 0o600);
        try {
          writeAll(file, content);
          if (found !== undefined) keepOwner(file, found);
          if (access === "public") fchmodSync(file, found === undefined ? newMode() : found.mode & 0o777);
          fsyncSync(file);
        } finally {
          closeSync(file);
        }
        renameSync(draft, target);
      } finally {
        rmSync(draft, { force: true });
      }
    },
    found,
  );
}

/** The mode of a new file that all may read, without what this user forbids. */
function newMode(): number {
  return 0o644 & ~process.umask();
}

/** Only root can keep the owner of a file of another user. */
function keepOwner(file: number, { uid, gid }: Stats): void {
  const own = fstatSync(file);
  if (own.uid === uid && own.gid === gid) return;
  try {
    fchownSync(file, uid, gid);
  } catch {
    // The file is then ours: its directory allows us to replace it.
  }
}

function writeAll(file: number, content: string | Uint8Array): void {
  const buffer = Buffer.from(content);
  for (let at = 0; at < buffer.length; ) at += writeSync(file, buffer, at);
}

/**
 * @param found the file that is there, and remains
 * @throws CliError naming the file: errors of a write name none, and those of a draft name the draft
 */
function explain<T>(path: string, write: () => T, found?: Stats): T {
  try {
    return write();
  } catch (error) {
    throw error instanceof Error && "code" in error && "syscall" in error
      ? cannotWrite(path, error, found === undefined ? "" : "; what was there remains")
      : error;
  }
}

function cannotWrite(path: string, error: Error & { readonly code: unknown }, rest: string): CliError {
  const reason = describeSystemError(error);
  if (saysDiskFull(error)) return diskFullError(`${path} cannot be written: ${reason}${rest}`);
  switch (error.code) {
    case "EEXIST":
      return usageError(`${path} already exists; name another file`);
    case "ENOENT":
      return usageError(
        `${path} cannot be written: the directory ${dirname(path)} does not exist; create it first`,
      );
    case "EBUSY":
      return usageError(
        `${path} cannot be replaced: it is a mount point; name a file in a mounted directory`,
      );
    case "EACCES":
    case "EPERM":
      // A file is replaced, so its directory must be writable, too.
      return usageError(`${path} cannot be written: permission denied for it or for its directory`);
    default:
      return usageError(`${path} cannot be written: ${reason}${rest}`);
  }
}
