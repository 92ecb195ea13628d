/**
 * Decides which refusals become entries of the audit log. Entries stay for ever, so refusals, which cost a caller
 * nothing, must not fill the disk.
 *
 * The first of equal refusals becomes an entry. Those that follow it are counted, and share one entry in each window.
 * Each user has a budget of entries and of bytes for an hour. Beyond it, refusals are only counted, and the number
 * becomes one entry at the end of the hour. The counts are in the memory of one server.
 */
import type { NewAuditEntry } from "./chain.ts";

/** The most entries that the refusals of one user add in an hour, and the most bytes; besides them, one entry has the sum. */
export const refusalBudget = { entries: 1000, bytes: 1024 * 1024 } as const;

/** Milliseconds for which equal refusals are counted before they become an entry. */
export const refusalWindowMs = 5 * 60_000;
const hourMs = 3_600_000;

/** The most refusals whose repetitions are counted, over all users. Those of others are written one by one. */
const maxWindows = 4096;
/** The most users with a separate budget. The others share one. */
const maxUsers = 10_000;

/** The operation of an entry that has the sum of what a user's budget had no room for. */
export const refusalSum = "REFUSALS";

/** What becomes of a refusal: an entry, a part of the count of an earlier one, or a part of the sum. */
export type RefusalFate = "write" | "repeated" | "unrecorded";

/** A count that is due, as the entry to write. */
export interface DueRefusals {
  readonly entry: NewAuditEntry;
  /** The refusals that it stands for. */
  readonly count: number;
}

/** Refusals that equal an entry. */
interface Window {
  readonly entry: NewAuditEntry;
  startedMs: number;
  /** The refusals after the entry. */
  count: number;
  /** Their address; empty if they have several. */
  clientAddress: string | undefined;
}

/** The budget of one user for one hour. */
interface Hour {
  readonly startedMs: number;
  entries: number;
  bytes: number;
  unrecorded: number;
}

/** The budgets of all users. It is pure: the caller passes the time, and writes the entries. */
export class RefusalBudget {
  readonly #windows = new Map<string, Window>();
  readonly #hours = new Map<string, Hour>();

  /** Decides about a refusal, and counts it. Write its entry if the answer is "write". */
  take(entry: NewAuditEntry, nowMs: number): RefusalFate {
    const window = this.#windows.get(nameWindow(entry));
    if (window !== undefined) {
      const { clientAddress = "" } = entry;
      window.clientAddress =
        window.count === 0 || window.clientAddress === clientAddress ? clientAddress : "";
      window.count += 1;
      return "repeated";
    }
    if (!this.#charge(entry, nowMs)) return "unrecorded";
    if (this.#windows.size < maxWindows)
      this.#windows.set(nameWindow(entry), { entry, startedMs: nowMs, count: 0, clientAddress: undefined });
    return "write";
  }

  /** Undoes the decision to write an entry that could not be written: the next equal refusal is a first one. */
  undo(entry: NewAuditEntry, nowMs: number): void {
    this.#windows.delete(nameWindow(entry));
    const hour = this.#hourOf(entry.user, nowMs);
    hour.entries -= 1;
    hour.bytes -= measureEntry(entry);
  }

  /** Adds refusals to the sum of a user, because their entry could not be written. */
  addUnrecorded(user: string, count: number, nowMs: number): void {
    this.#hourOf(user, nowMs).unrecorded += count;
  }

  /** Takes the counts whose time is over; all of them if `isClosing`. Write their entries. */
  takeDue(nowMs: number, isClosing = false): DueRefusals[] {
    const isOver = (startedMs: number, lengthMs: number): boolean =>
      // A clock that was set back must not stop the counts from becoming entries.
      isClosing || nowMs < startedMs || nowMs >= startedMs + lengthMs;
    const due: DueRefusals[] = [];
    for (const [name, window] of this.#windows) {
      if (!isOver(window.startedMs, refusalWindowMs)) continue;
      const { count, entry } = window;
      if (count > 0) {
        const repeated = describeRepeated(window);
        if (this.#charge(repeated, nowMs, count)) due.push({ entry: repeated, count });
      }
      // Refusals that go on are counted further, so that they add one entry in each window.
      if (count > 0 && !isClosing)
        this.#windows.set(name, { entry, startedMs: nowMs, count: 0, clientAddress: undefined });
      else this.#windows.delete(name);
    }
    for (const [user, { startedMs, unrecorded }] of this.#hours) {
      if (!isOver(startedMs, hourMs)) continue;
      this.#hours.delete(user);
      if (unrecorded > 0) due.push({ entry: describeSum(user, unrecorded), count: unrecorded });
    }
    return due;
  }

  /** Charges an entry to its user. @returns false if there is no room; then it counts as that many unrecorded refusals */
  #charge(entry: NewAuditEntry, nowMs: number, refusals = 1): boolean {
    const hour = this.#hourOf(entry.user, nowMs);
    const bytes = measureEntry(entry);
    if (hour.entries + 1 > refusalBudget.entries || hour.bytes + bytes > refusalBudget.bytes) {
      hour.unrecorded += refusals;
      return false;
    }
    hour.entries += 1;
    hour.bytes += bytes;
    return true;
  }

  #hourOf(user: string, nowMs: number): Hour {
    const name = this.#hours.has(user) || this.#hours.size < maxUsers ? user : others;
    const known = this.#hours.get(name);
    if (known !== undefined) return known;
    const hour: Hour = { startedMs: nowMs, entries: 0, bytes: 0, unrecorded: 0 };
    this.#hours.set(name, hour);
    return hour;
  }
}

/** The users who share one budget. No user has this name. */
const others = "";

function nameWindow({ user, operation, keyId, owner = "", details }: NewAuditEntry): string {
  return JSON.stringify([user, operation, keyId, owner, details]);
}

function describeRepeated({ entry, count, clientAddress = "" }: Window): NewAuditEntry {
  return { ...entry, details: `${entry.details}, repeated=${count}`, clientAddress, requestId: "" };
}

function describeSum(user: string, unrecorded: number): NewAuditEntry {
  const details = `unrecorded=${unrecorded}`;
  return { keyId: "", operation: refusalSum, user: user || "system", outcome: "REFUSED", details };
}

/** Bytes of the hashes, the numbers and the overhead of a row, and of its places in four indexes. */
const rowBytes = 500;

/** Measures about how much an entry adds to the store; the indexes repeat the names of its key and of the owner. */
function measureEntry(entry: NewAuditEntry): number {
  const {
    keyId,
    operation,
    user,
    details,
    clientAddress = "",
    requestId = "",
    owner = "",
    keyName = "",
  } = entry;
  const once = operation + user + details + clientAddress + requestId;
  return rowBytes + Buffer.byteLength(once) + 3 * Buffer.byteLength(keyId + owner + keyName);
}
