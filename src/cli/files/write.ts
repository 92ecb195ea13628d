/** Writes files atomically: a temporary file next to the target replaces it. */
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
import { describeSystemError } from "../../system-error.ts";
import { type CliError, outputError, usageError } from "../exit-codes.ts";

/** Who may read a file. A private file becomes readable only by its owner, whatever its mode was before. */
type FileAccess = "public" | "private";

/** A file that is being written. Its content appears under its path only when `finish` succeeds. */
export interface OutputFile {
  /** @throws CliError */
  write(content: string | Uint8Array): void;
  /** @throws CliError */
  finish(): void;
  /** Removes whatever was written, unless `finish` succeeded. */
  discard(): void;
}

/** Writes a whole file. */
export function writeTo(file: OutputFile, content: string | Uint8Array): void {
  try {
    file.write(content);
    file.finish();
  } finally {
    file.discard();
  }
}

/**
 * Opens a file that does not exist yet. It reserves the name, so that it never overwrites a file.
 *
 * @throws CliError if the path exists, even as a dangling link
 */
export function openNewFile(path: string, access: FileAccess): OutputFile {
  explain(path, () => closeSync(openSync(path, "wx", 0o600)));
  const release = (): void => rmSync(path, { force: true });
  try {
    return openDraft({ path, target: path, found: undefined }, access, release);
  } catch (error) {
    release();
    throw error;
  }
}

/**
 * Opens a file to create or replace. Links are followed, and an existing file keeps its mode and, if the system allows
 * it, its owner. Pipes, terminals and other non-files are written directly.
 *
 * @throws CliError
 */
export function openFile(path: string, access: FileAccess): OutputFile {
  const found = explain(path, () => statSync(path, { throwIfNoEntry: false }));
  if (found?.isDirectory()) throw usageError(`${path} is a directory; name a file`);
  if (isOpenFile(path) || (found !== undefined && !found.isFile())) return openInPlace(path);
  // A rename would bypass the target's write protection.
  if (found !== undefined) explain(path, () => accessSync(path, constants.W_OK));
  return openDraft({ path, target: findTarget(path), found }, access);
}

/**
 * Replaces a private file and creates missing parent directories.
 *
 * @throws CliError
 */
export function replacePrivateFile(path: string, content: string): void {
  makeParents(path);
  writeTo(openFile(path, "private"), content);
}

/**
 * Opens a private file that does not exist yet, and creates missing parent directories.
 *
 * @throws CliError
 */
export function openNewPrivateFile(path: string): OutputFile {
  makeParents(path);
  return openNewFile(path, "private");
}

function makeParents(path: string): void {
  try {
    makeDirectories(dirname(path));
  } catch (error) {
    const reason = `the directory ${dirname(path)} cannot be created: ${describeSystemError(error)}`;
    throw outputError(`${path} cannot be written: ${reason}`, error);
  }
}

/** Paths of open files: /dev/stdout, /dev/fd/3. A rename would replace the path, not the open file. */
function isOpenFile(path: string): boolean {
  return /^\/(?:dev\/(?:stdin|stdout|stderr|fd\/\d+)|proc\/(?:self|\d+)\/fd\/\d+)$/.test(resolve(path));
}

/** Maximum links to follow; a longer chain is a loop (path_resolution(7)). */
const maxLinks = 40;

/** Resolves links; for a file that does not exist yet, returns the path at which it would be created. */
export function findTarget(path: string): string {
  // realpath also normalizes letter case on case-insensitive file systems.
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

function openInPlace(path: string): OutputFile {
  const file = explain(path, () => openSync(path, "w"));
  let isOpen = true;
  const close = (): void => {
    if (isOpen) closeSync(file);
    isOpen = false;
  };
  return {
    write: (content) => explain(path, () => writeAll(file, content)),
    finish: () => explain(path, close),
    discard: close,
  };
}

/** A file to replace. */
interface Place {
  /** The path as typed, for error messages. */
  readonly path: string;
  /** The path after resolving links. */
  readonly target: string;
  /** The existing file, whose mode and owner are kept. */
  readonly found: Stats | undefined;
}

/**
 * Opens a draft that replaces a file.
 *
 * @param release runs when the draft is discarded
 */
function openDraft(
  { path, target, found }: Place,
  access: FileAccess,
  release: () => void = () => {},
): OutputFile {
  // A short name, because the target's name may already have the maximum length.
  const draft = join(dirname(target), `.qsp-${randomBytes(8).toString("hex")}.draft`);
  const file = explain(path, () => openSync(draft, "wx", 0o600), found);
  let isOpen = true;
  const discard = (): void => {
    if (!isOpen) return;
    isOpen = false;
    process.off("exit", discard);
    closeSync(file);
    rmSync(draft, { force: true });
    release();
  };
  // An interrupted program leaves no draft behind.
  process.on("exit", discard);
  return {
    write: (content) => explain(path, () => writeAll(file, content), found),
    finish: () =>
      explain(
        path,
        () => {
          if (found !== undefined) keepOwner(file, found);
          if (access === "public") fchmodSync(file, found === undefined ? newMode() : found.mode & 0o777);
          fsyncSync(file);
          renameSync(draft, target);
          isOpen = false;
          process.off("exit", discard);
          closeSync(file);
        },
        found,
      ),
    discard,
  };
}

/** Returns the mode for a new public file under the user's umask. */
function newMode(): number {
  return 0o644 & ~process.umask();
}

/** Only root can preserve another user's ownership. */
function keepOwner(file: number, { uid, gid }: Stats): void {
  const own = fstatSync(file);
  if (own.uid === uid && own.gid === gid) return;
  try {
    fchownSync(file, uid, gid);
  } catch {
    // The file then belongs to us: the directory permissions allowed the replacement.
  }
}

function writeAll(file: number, content: string | Uint8Array): void {
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
}

/**
 * @param found the existing file, which remains unchanged
 * @throws CliError that names the target: system errors name the draft or nothing
 */
function explain<T>(path: string, write: () => T, found?: Stats): T {
  try {
    return write();
  } catch (error) {
    throw error instanceof Error && "code" in error && "syscall" in error
      ? cannotWrite(path, error, found === undefined ? "" : "; the existing file is unchanged")
      : error;
  }
}

function cannotWrite(path: string, error: Error & { readonly code: unknown }, rest: string): CliError {
  // Replacing a file requires a writable directory too.
  const denied = `${path} cannot be written: permission denied for it or for its directory`;
  const sentences: Readonly<Record<string, string>> = {
    EEXIST: `${path} already exists; name another file`,
    ENOENT: `${path} cannot be written: the directory ${dirname(path)} does not exist; create it first`,
    EBUSY: `${path} cannot be replaced: it is a mount point; name a file in a mounted directory`,
    EACCES: denied,
    EPERM: denied,
  };
  const other = `${path} cannot be written: ${describeSystemError(error)}${rest}`;
  return outputError(sentences[String(error.code)] ?? other, error);
}
