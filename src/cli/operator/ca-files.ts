/** Writes keys and certificates so that either all are in place or the previous files remain. */

import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { ConfigError } from "../../config.ts";
import { diskFullError } from "../../database/disk-full.ts";
import { sync } from "../../database/fsync.ts";
import { giveDirectory, giveToOwner, makePrivateDirectory } from "../../database/owned-files.ts";
import { describeSystemError, saysDiskFull } from "../../system-error.ts";

/** Contents by file name, in the order in which they are moved into place. */
export type Files = Readonly<Record<string, string>>;

/** Age after which a draft counts as left over from a killed run; a run takes at most a second. */
const abandonedAfterMs = 60_000;

/**
 * Creates a directory of mode 0700 that appears with all its files at once.
 *
 * @throws ConfigError if the directory exists and is not empty, or cannot be written
 */
export function createFilledDirectory(directory: string, files: Files): void {
  explainFailure(directory, () => {
    makePrivateDirectory(dirname(directory));
    writeDraft(directory, files, (draft) => {
      // Last, because its owner can replace what root writes there.
      giveDirectory(draft);
      renameSync(draft, directory);
      sync(dirname(directory));
    });
  });
}

/**
 * Replaces files in the given order with one rename each: no file system renames two files atomically. Put a key
 * before its certificate, so that a process that watches the certificate finds both. If a replacement fails, all
 * files are restored.
 *
 * @param name the draft directory, in the same directory; its name keeps concurrent runs apart
 * @throws ConfigError if they cannot be written, or another run is in progress
 */
export function replaceFiles(directory: string, name: string, files: Files): void {
  explainFailure(directory, () => {
    writeDraft(join(directory, name), files, (draft) => {
      const names = Object.keys(files);
      const isOld = new Set(names.filter((file) => existsSync(join(directory, file))));
      for (const file of isOld) copyFileSync(join(directory, file), join(draft, `${file}.old`));
      const moved: string[] = [];
      try {
        for (const file of names) {
          renameSync(join(draft, file), join(directory, file));
          moved.push(file);
        }
      } catch (error) {
        for (const file of moved.reverse()) {
          if (isOld.has(file)) renameSync(join(draft, `${file}.old`), join(directory, file));
          else rmSync(join(directory, file));
        }
        throw error;
      }
      sync(directory);
    });
  });
}

/** Certificates are world-readable; keys are readable only by their owner. */
function readMode(file: string): number {
  return file.endsWith(".crt") ? 0o644 : 0o600;
}

/** Writes files to a temporary directory, and removes it at the end. */
function writeDraft(path: string, files: Files, publish: (draft: string) => void): void {
  const draft = `${path}.draft`;
  removeAbandoned(draft);
  mkdirSync(draft, { mode: 0o700 });
  try {
    for (const [file, content] of Object.entries(files)) writeNew(draft, file, content);
    sync(draft);
    publish(draft);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** As root, creates the file for the owner of the draft's parent directory. */
function writeNew(draft: string, name: string, content: string): void {
  const file = openSync(join(draft, name), "wx", readMode(name));
  try {
    giveToOwner(file, draft);
    writeFileSync(file, content, { flush: true });
  } finally {
    closeSync(file);
  }
}

function removeAbandoned(draft: string): void {
  const made = statSync(draft, { throwIfNoEntry: false });
  if (made === undefined) return;
  if (Date.now() - made.mtimeMs < abandonedAfterMs)
    throw new ConfigError(
      `${draft} belongs to another run, which is in progress or was killed; try again in a minute`,
    );
  rmSync(draft, { recursive: true });
}

function explainFailure(directory: string, write: () => void): void {
  try {
    write();
  } catch (error) {
    if (saysDiskFull(error)) throw diskFullError(directory);
    if (error instanceof Error && "code" in error)
      throw new ConfigError(`${directory} cannot be written: ${describeSystemError(error)}`);
    throw error;
  }
}
