/**
 * Finds damage in the write-ahead log of SQLite that SQLite itself passes over (https://sqlite.org/walformat.html).
 *
 * After a crash, SQLite takes the transactions of the log up to the first frame whose checksum is wrong, and drops the
 * rest without a word. That is right after a power cut, which can only tear the last transaction. But a transaction
 * begins only after the one before it is on the disk, so a frame behind the end of a transaction proves that all of
 * that transaction was there. If a part of it is wrong now, it was damaged later, and callers have the answers of what
 * SQLite would drop.
 */
import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { StorageError } from "./store-error.ts";

/** Damage in a log. */
export interface LogDamage {
  /** The first wrong frame; 0 is the header of the log. */
  readonly frame: number;
  /** Complete transactions behind the damage, at least. */
  readonly transactions: number;
  /** Names the log, which begins again from time to time. */
  readonly salts: string;
}

/** The path of the log of a database. */
export function logPath(databasePath: string): string {
  return `${databasePath}-wal`;
}

/**
 * Refuses a database before SQLite opens it, and would drop transactions of its log, or remove the log.
 *
 * @throws StorageError
 */
export function requireWholeLog(databasePath: string): void {
  const path = logPath(databasePath);
  // SQLite removes the log of a database that is new or empty. A new one has a page before it has a log.
  const hasLog = sizeOf(path) > 0;
  if (hasLog && sizeOf(databasePath) === 0)
    throw new StorageError(
      `${path} is the log of a store, but ${databasePath} is missing or empty: put that file back, or move the log away and restore a backup`,
    );
  const damage = findLogDamage(databasePath);
  if (damage === undefined) return;
  throw new StorageError(
    `${path} is damaged ${describePlace(damage)}, and transactions that were acknowledged follow it: restore a backup, or go on without them with qsp store cut-log`,
  );
}

/** Describes where the damage is, such as "at frame 12". */
export function describePlace({ frame }: LogDamage): string {
  return frame === 0 ? "in its header" : `at frame ${frame}`;
}

/** Looks for a complete transaction behind damage in the log of a database. Another program may write it meanwhile. */
export function findLogDamage(databasePath: string): LogDamage | undefined {
  const path = logPath(databasePath);
  let damage = scan(path);
  while (damage !== undefined) {
    // What was only half written is now whole: the transaction behind it had begun. A log that began again has other salts.
    const again = scan(path);
    if (again?.frame === damage.frame && again.salts === damage.salts) break;
    damage = again;
  }
  return damage;
}

const headerBytes = 32;
const frameHeaderBytes = 24;
const pageSizes = [512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536];
/** The last bit says whether the checksums take words as big-endian. */
const magic = 0x377f0682;

/** The two words of a checksum. */
type Checksum = readonly [number, number];

/** How a log is written. */
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
  /** The sums that the frame before may have had: the stored one, or the one of its content if one of them is wrong. */
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
    // Frames with other salts are remains from before the log began again.
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

/** Sums the number of the page, the mark of a commit and the page, but not the salts. */
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

/** Another program that ends may just have removed it. */
function openIfThere(path: string): number | undefined {
  try {
    return openSync(path, "r");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
