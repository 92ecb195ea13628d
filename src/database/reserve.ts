/**
 * The reserve of a SQLite store: a file whose disk space goes to the database when the disk is full. While
 * the reserve is released, the store accepts only safety operations, such as log-ins and key destruction.
 */
import { randomFillSync } from "node:crypto";
import { existsSync, statfsSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { giveToOwner } from "./owned-files.ts";

/** Size of the reserve, in bytes: SQLite's log takes about as much before a checkpoint resets it. */
const maxReserveBytes = 4 * 1024 * 1024;
/** A reserve takes at most this fraction of a disk: one part in so many. */
const partsOfDisk = 8;
const pieceBytes = 64 * 1024;

/** Disk space that a store keeps for safety operations. */
export interface Reserve {
  /** Whether the disk is full and the reserve is in use. */
  readonly isReleased: boolean;
  /** Returns whether the complete file exists. */
  isWhole(): boolean;
  /** Frees its space for the database. */
  release(): Promise<void>;
  /** Takes the space again if there is enough. If not, the reserve counts as released. */
  restore(): Promise<void>;
}

/** The path of a database's reserve. */
export function reservePath(databasePath: string): string {
  return `${databasePath}-reserve`;
}

/** Opens a database's reserve. It takes no space before `restore`. */
export function openReserve(databasePath: string): Reserve {
  const path = reservePath(databasePath);
  const { reserveBytes, hasRoom } = measureDisk(path);
  let isReleased = !existsSync(path) && !hasRoom;
  /** Serializes operations: a release must not meet a half-written file. */
  let last: Promise<void> = Promise.resolve();
  const inTurn = (step: () => Promise<void>): Promise<void> => {
    const done = last.then(step);
    last = done.catch(() => {});
    return done;
  };
  return {
    get isReleased() {
      return isReleased;
    },
    isWhole: () => existsSync(path),
    release: () =>
      inTurn(async () => {
        isReleased = true;
        await rm(path, { force: true });
      }),
    restore: () =>
      inTurn(async () => {
        if (!existsSync(path)) {
          // As much again must remain free, or the disk would be full at once.
          if (measureDisk(path).hasRoom)
            await allocate(path, reserveBytes).catch(() => rm(draftPath(path), { force: true }));
        }
        isReleased = !existsSync(path);
      }),
  };
}

function measureDisk(path: string): { readonly reserveBytes: number; readonly hasRoom: boolean } {
  const { bavail, blocks, bsize } = statfsSync(dirname(path));
  const reserveBytes = Math.min(maxReserveBytes, Math.floor((blocks * bsize) / partsOfDisk));
  return { reserveBytes, hasRoom: bavail * bsize >= 2 * reserveBytes };
}

/** A reserve that is not complete yet. A program that was killed may leave one. */
const draftPath = (path: string): string => `${path}.draft`;

/** Writes random bytes: a file system may store zeros without using space. */
async function allocate(path: string, bytes: number): Promise<void> {
  const draft = draftPath(path);
  await rm(draft, { force: true });
  const file = await open(draft, "wx", 0o600);
  try {
    giveToOwner(file.fd, draft);
    const piece = Buffer.alloc(pieceBytes);
    for (let written = 0; written < bytes; written += piece.length)
      await file.write(randomFillSync(piece), 0, Math.min(piece.length, bytes - written));
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(draft, path);
}
