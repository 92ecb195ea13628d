/** Does work whose time has come. An item that fails is tried again after a delay of its own, and holds up no other. */
import type { Background } from "./background.ts";

/** The place of an item in the order of their times. */
export interface DuePosition {
  readonly dueAtMs: number;
  /** Orders items of the same time. */
  readonly position: number;
}

/** An item that is due. */
export interface DueItem extends DuePosition {
  /** Identifies it, in log lines too. */
  readonly about: Readonly<Record<string, string>>;
  /** Does the work. It stays due if this throws. */
  readonly run: () => Promise<void>;
}

/** One kind of items. */
export interface DueKind {
  /** Names the work in metrics and log lines. */
  readonly work: string;
  /** Lists items that are due at a time, in order, after a position. */
  readonly list: (atMs: number, limit: number, after: DuePosition) => Promise<readonly DueItem[]>;
  /** Counts the items that are due at a time. */
  readonly count: (atMs: number) => Promise<number>;
}

/** The clock, and who hears of failures. */
export interface DueWorkDeps {
  readonly background: Background;
  readonly now: () => Date;
}

/** The work of one kind. */
export interface DueWork {
  /** Does what is due, some items at a time. @throws if it cannot be listed */
  doDue(): Promise<void>;
  /** Reports how much is overdue. */
  reportOverdue(): Promise<void>;
}

/** The most items to do at a time. */
const maxItems = 64;
/** The most pages to read for them. The next call goes on behind the last one. */
const maxPages = 16;
/** Milliseconds after which an item that failed is tried again, at first. Each failure doubles them. */
const minRetryMs = 1000;
const maxRetryMs = 3_600_000;
/** Milliseconds from which an item is overdue. */
const overdueMs = 60_000;

const beginning: DuePosition = { dueAtMs: -1, position: -1 };

/** The attempts at an item that failed. */
interface Retry {
  readonly failures: number;
  readonly notBeforeMs: number;
}

/** Creates the work of one kind. It remembers only failures, so a new program begins with all that is due. */
export function createDueWork({ work, list, count }: DueKind, { background, now }: DueWorkDeps): DueWork {
  background.started(work);
  const retries = new Map<string, Retry>();
  let after = beginning;

  /** Pages through what is due, past items that wait for their next attempt. */
  const listReady = async (atMs: number): Promise<DueItem[]> => {
    const ready: DueItem[] = [];
    for (let page = 0; page < maxPages && ready.length < maxItems; page += 1) {
      const items = await list(atMs, maxItems, after);
      ready.push(...items.filter((item) => (retries.get(nameItem(item))?.notBeforeMs ?? 0) <= atMs));
      const last = items.length < maxItems ? undefined : items.at(-1);
      after = last ?? beginning;
      if (last === undefined) {
        forgetGone(atMs);
        break;
      }
    }
    return ready;
  };
  /** Forgets items that nobody found due again, because another server did them. */
  const forgetGone = (atMs: number): void => {
    for (const [name, { notBeforeMs }] of retries) if (notBeforeMs + maxRetryMs < atMs) retries.delete(name);
  };
  const attempt = async (item: DueItem): Promise<void> => {
    const name = nameItem(item);
    try {
      await item.run();
      retries.delete(name);
    } catch (error) {
      const failures = (retries.get(name)?.failures ?? 0) + 1;
      const delayMs = Math.min(minRetryMs * 2 ** (failures - 1), maxRetryMs);
      retries.set(name, { failures, notBeforeMs: now().getTime() + delayMs });
      background.failed({ work, error, about: item.about });
    }
  };

  return {
    async doDue() {
      const ready = await listReady(now().getTime());
      await Promise.all(ready.map(attempt));
    },
    async reportOverdue() {
      const atMs = now().getTime();
      const items = await count(atMs - overdueMs);
      const [oldest] = items === 0 ? [] : await list(atMs, 1, beginning);
      background.overdue(work, items, oldest === undefined ? 0 : (atMs - oldest.dueAtMs) / 1000);
    },
  };
}

function nameItem({ about }: DueItem): string {
  return JSON.stringify(about);
}
