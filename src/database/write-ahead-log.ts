/**
 * Finds damage in SQLite's write-ahead log that SQLite itself ignores (https://sqlite.org/walformat.html).
 *
 * After a crash, SQLite replays the log up to the first frame with a wrong checksum and silently drops the
 * rest. That is right after a power cut, which can tear only the last transaction. But a transaction begins
 * only after the previous one is on disk, so a frame after the end of a transaction proves that the whole
 * transaction was written. If part of it is wrong now, it was damaged later, and SQLite would drop
 * acknowledged changes.
 */
import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { readErrorCode } from "../system-error.ts";
import { StorageError } from "./store-error.ts";

export interface LogDamage {
  /** The first damaged frame; 0 is the log's header. */
  readonly frame: number;
  /** Minimum number of complete transactions after the damage. */
  readonly transactions: number;
  /** Identifies the log, which restarts from time to time. */
  readonly salts: string;
}

/** The path of a database's log. */
export function logPath(databasePath: string): string {
  return `${databasePath}-wal`;
}

/**
 * Rejects a database before SQLite opens it and drops transactions or deletes the log.
 *
 * @throws StorageError
 */
export function requireWholeLog(databasePath: string): void {
  const path = logPath(databasePath);
  // SQLite deletes the log of a new or empty database. A new one has a page before it has a log.
  const hasLog = sizeOf(path) > 0;
  if (hasLog && sizeOf(databasePath) === 0)
    throw new StorageError(
      `${path} is a store's log, but ${databasePath} is missing or empty: put that file back, or move the log away and restore a backup`,
    );
  const damage = findLogDamage(databasePath);
  if (damage === undefined) return;
  throw new StorageError(
    `${path} is damaged ${describePlace(damage)}, and acknowledged transactions follow it: restore a backup, or drop those transactions with qsp store cut-log`,
  );
}

/** Describes the position of the damage, such as "at frame 12". */
export function describePlace({ frame }: LogDamage): string {
  return frame === 0 ? "in its header" : `at frame ${frame}`;
}

/**
 * Looks for a complete transaction after damage in a database's log, which another program may be writing.
 */
export function findLogDamage(databasePath: string): LogDamage | undefined {
  const path = logPath(databasePath);
  let damage = scan(path);
  while (damage !== undefined) {
    // A half-written frame is complete now: the transaction after it had begun. A restarted log has different
    // salts.
    const again = scan(path);
    if (again?.frame === damage.frame && again.salts === damage.salts) break;
    damage = again;
  }
  return damage;
}

const headerBytes = 32;
const frameHeaderBytes = 24;
const pageSizes = [512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536];
/** The last bit selects big-endian words for the checksums. */
const magic = 0x377f0682;

type Checksum = readonly [number, number];

/** Format of a log. */
interface LogFormat {
  readonly pageSize: number;
  readonly isLittleEndian: boolean;
}

/** Every format, for a log whose header cannot be trusted. */
const formats: readonly LogFormat[] = pageSizes.flatMap((pageSize) =>
  [true, false].map((isLittleEndian) => ({ pageSize, isLittleEndian })),
);

function scan(path: string): LogDamage | undefined {
  const file = openIfThere(path);
  if (file === undefined) return undefined;
  try {
    const header = new DataView(new ArrayBuffer(headerBytes));
    if (readSync(file, header, 0, headerBytes, 0) < headerBytes) return undefined;
    const format = readFormat(header);
    if (format !== undefined) return scanFrames(file, header, format, true);
    for (const guess of formats) {
      const damage = scanFrames(file, header, guess, false);
      if (damage !== undefined) return damage;
    }
    return undefined;
  } finally {
    closeSync(file);
  }
}

/** @returns undefined for a damaged header, with which SQLite drops the whole log */
function readFormat(header: DataView): LogFormat | undefined {
  const format = { pageSize: header.getUint32(8), isLittleEndian: header.getUint32(0) === magic };
  const isKnown = (header.getUint32(0) & ~1) === magic && pageSizes.includes(format.pageSize);
  return isKnown && isEqual(sumOfHeader(header, format), readSum(header, 24)) ? format : undefined;
}

function scanFrames(
  file: number,
  header: DataView,
  format: LogFormat,
  isHeaderWhole: boolean,
): LogDamage | undefined {
  const frameBytes = frameHeaderBytes + format.pageSize;
  const frame = new DataView(new ArrayBuffer(frameBytes));
  let salts = isHeaderWhole ? readSalts(header, 16) : undefined;
  let broken = isHeaderWhole ? undefined : 0;
  /** Possible checksums of the previous frame: the stored one, and the computed one if they differ. */
  let before = [readSum(header, 24), ...(isHeaderWhole ? [] : [sumOfHeader(header, format)])];
  let isTransactionBefore = true;
  let isProven = false;
  let transactions = 0;
  const count = Math.floor((fstatSync(file).size - headerBytes) / frameBytes);
  for (let number = 1; number <= count; number += 1) {
    if (readSync(file, frame, 0, frameBytes, headerBytes + (number - 1) * frameBytes) < frameBytes) break;
    const stored = readSum(frame, 16);
    const isCommit = frame.getUint32(4) !== 0;
    salts ??= readSalts(frame, 8);
    // Frames with other salts are left over from before the log restarted.
    const isCurrent = readSalts(frame, 8) === salts && frame.getUint32(0) !== 0;
    const sums = isCurrent ? before.map((sum) => sumOfFrame(sum, frame, format)) : [];
    const isLinked = sums.some((sum) => isEqual(sum, stored));
    if (broken === undefined && !isLinked) broken = number;
    else if (broken !== undefined && isLinked) {
      isProven ||= isTransactionBefore;
      if (isCommit) transactions += 1;
    }
    before = isLinked ? [stored] : [stored, ...sums.slice(-1)];
    isTransactionBefore = isCommit;
  }
  return isProven ? { frame: broken ?? 0, transactions, salts: salts ?? "" } : undefined;
}

function sumOfHeader(header: DataView, format: LogFormat): Checksum {
  return extendSum([0, 0], header, 0, 24, format);
}

/** Computes the checksum of the page number, the commit mark and the page, without the salts. */
function sumOfFrame(before: Checksum, frame: DataView, format: LogFormat): Checksum {
  return extendSum(extendSum(before, frame, 0, 8, format), frame, frameHeaderBytes, frame.byteLength, format);
}

function extendSum(
  before: Checksum,
  bytes: DataView,
  start: number,
  end: number,
  { isLittleEndian }: LogFormat,
): Checksum {
  let [first, second] = before;
  for (let at = start; at < end; at += 8) {
    first = (first + bytes.getUint32(at, isLittleEndian) + second) >>> 0;
    second = (second + bytes.getUint32(at + 4, isLittleEndian) + first) >>> 0;
  }
  return [first, second];
}

function readSum(bytes: DataView, at: number): Checksum {
  return [bytes.getUint32(at), bytes.getUint32(at + 4)];
}

function readSalts(bytes: DataView, at: number): string {
  return readSum(bytes, at).join(" ");
}

function isEqual(one: Checksum, other: Checksum): boolean {
  return one[0] === other[0] && one[1] === other[1];
}

/** Another program that is ending may just have removed it. */
function openIfThere(path: string): number | undefined {
  try {
    return openSync(path, "r");
  } catch (error) {
    if (readErrorCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
