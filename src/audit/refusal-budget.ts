/**
 * Decides which refusals become audit log entries. Entries are kept forever, so refusals, which cost a caller
 * nothing, must not fill the disk.
 *
 * The first of several equal refusals becomes an entry. Repetitions are counted and share one entry per
 * window. Each user has an hourly budget of entries and bytes. Beyond it, refusals are only counted, and the
 * count becomes one entry at the end of the hour. Counts are in the memory of one server.
 */
import type { NewAuditEntry } from "./chain.ts";

/** Maximum entries and bytes that one user's refusals add per hour, in addition to one entry with the sum. */
export const refusalBudget = { entries: 1000, bytes: 1024 * 1024 } as const;

/** Milliseconds to count equal refusals before they become an entry. */
export const refusalWindowMs = 5 * 60_000;
const hourMs = 3_600_000;

/**
 * Maximum refusals whose repetitions are counted, across all users. Further refusals are written one by one.
 */
const maxWindows = 4096;
/** Maximum users with a separate budget. All others share one. */
const maxUsers = 10_000;

/** Operation of an entry with the number of refusals that exceeded a user's budget. */
export const refusalSum = "REFUSALS";

/** What happens to a refusal: it becomes an entry, or is added to an earlier one's count or to the sum. */
export type RefusalFate = "write" | "repeated" | "unrecorded";

/** A count that is due, as the entry to write. */
export interface DueRefusals {
  readonly entry: NewAuditEntry;
  /** Number of refusals that the entry stands for. */
  readonly count: number;
}

/** Refusals equal to an entry. */
interface Window {
  readonly entry: NewAuditEntry;
  startedMs: number;
  /** Refusals after the entry. */
  count: number;
  /** Their client address; empty if they have several. */
  clientAddress: string | undefined;
}

/** One user's budget for one hour. */
interface Hour {
  readonly startedMs: number;
  entries: number;
  bytes: number;
  unrecorded: number;
}

/** All users' budgets. It has no side effects: the caller passes the time and writes the entries. */
export class RefusalBudget {
  readonly #windows = new Map<string, Window>();
  readonly #hours = new Map<string, Hour>();

  /** Decides about a refusal and counts it. The caller writes its entry if the result is "write". */
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

  /**
   * Reverts the decision to write an entry that could not be written: the next equal refusal becomes the
   * first again. Repetitions in the meantime are added to the sum.
   */
  undo(entry: NewAuditEntry, nowMs: number): void {
    const name = nameWindow(entry);
    const hour = this.#hourOf(entry.user, nowMs);
    hour.unrecorded += this.#windows.get(name)?.count ?? 0;
    this.#windows.delete(name);
    hour.entries -= 1;
    hour.bytes -= measureEntry(entry);
  }

  /** Adds refusals to a user's sum because their entry could not be written. */
  addUnrecorded(user: string, count: number, nowMs: number): void {
    this.#hourOf(user, nowMs).unrecorded += count;
  }

  /**
   * Removes and returns the counts whose time has ended; all counts if `isClosing`. The caller writes their
   * entries.
   */
  takeDue(nowMs: number, isClosing = false): DueRefusals[] {
    const isOver = (startedMs: number, lengthMs: number): boolean =>
      // A clock that was set back must not keep counts from becoming entries.
      isClosing || nowMs < startedMs || nowMs >= startedMs + lengthMs;
    const due: DueRefusals[] = [];
    for (const [name, window] of this.#windows) {
      if (!isOver(window.startedMs, refusalWindowMs)) continue;
      const { count, entry } = window;
      if (count > 0) {
        const repeated = describeRepeated(window);
        if (this.#charge(repeated, nowMs, count)) due.push({ entry: repeated, count });
      }
      // Continuing refusals are counted further, so that they add one entry per window.
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

  /**
   * Charges an entry to its user.
   *
   * @returns false if the budget is exhausted; the entry then counts as that many unrecorded refusals
   */
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
    return this.#hours.getOrInsert(name, { startedMs: nowMs, entries: 0, bytes: 0, unrecorded: 0 });
  }
}

/** Users that share one budget. No user has this name. */
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

/** Bytes of the hashes, the numbers, the overhead of a row, and its places in four indexes. */
const rowBytes = 500;

/** Estimates how much an entry adds to the store; the indexes repeat its key names and the owner. */
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
