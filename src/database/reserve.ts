/**
 * The reserve of a SQLite store: a file whose room the database gets when its disk is full. While it is released, the
 * store lets only safety operations write, such as log-ins and the destruction of keys.
 */
import { randomFillSync } from "node:crypto";
import { existsSync, statfsSync } from "node:fs";
import { open, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { giveToOwner } from "./owned-files.ts";

/** Bytes of the reserve: the log of SQLite takes about as much before it is written to the database and begins again. */
const maxReserveBytes = 4 * 1024 * 1024;
/** The most of a disk that a reserve takes: one part of so many. */
const partsOfDisk = 8;
const pieceBytes = 64 * 1024;

/** The room that a store keeps for safety operations. */
export interface Reserve {
  /** Whether the disk is full, so that the reserve is in use. */
  readonly isReleased: boolean;
  /** Tells whether the file is there. */
  isWhole(): boolean;
  /** Gives its room to the database. */
  release(): Promise<void>;
  /** Takes the room again, if there is enough of it. If not, the reserve counts as released. */
  restore(): Promise<void>;
}

/** The path of the reserve of a database. */
export function reservePath(databasePath: string): string {
  return `${databasePath}-reserve`;
}

/** Opens the reserve of a database. It takes no room before `restore`. */
export function openReserve(databasePath: string): Reserve {
  const path = reservePath(databasePath);
  const { reserveBytes, hasRoom } = measureDisk(path);
  let isReleased = !existsSync(path) && !hasRoom;
  /** One after another: a release must not meet half of a file. */
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
          // As much must remain free, or the disk would be full again at once.
          if (measureDisk(path).hasRoom)
            await fill(path, reserveBytes).catch(() => rm(path, { force: true }));
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

/** Writes random bytes: a file system may store zeros without using any room. */
async function fill(path: string, bytes: number): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    giveToOwner(file.fd, path);
    const piece = Buffer.alloc(pieceBytes);
    for (let written = 0; written < bytes; written += piece.length)
      await file.write(randomFillSync(piece), 0, Math.min(piece.length, bytes - written));
    await file.sync();
  } finally {
    await file.close();
  }
}
