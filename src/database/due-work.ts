/** Runs work when it is due. A failed item is retried after its own delay and does not block other items. */
import type { Background } from "./background.ts";

/** Position of an item in due-time order. */
export interface DuePosition {
  readonly dueAtMs: number;
  /** Orders items with the same time. */
  readonly position: number;
}

export interface DueItem extends DuePosition {
  /** Identifies the item, including in log lines. */
  readonly about: Readonly<Record<string, string>>;
  /** Does the work. The item stays due if this throws. */
  readonly run: () => Promise<void>;
}

/** One kind of scheduled work. */
export interface DueKind {
  /** Name of the work in metrics and log lines. */
  readonly work: string;
  /** Lists items due at a time, in order, after a position. */
  readonly list: (atMs: number, limit: number, after: DuePosition) => Promise<readonly DueItem[]>;
  /** Counts the items due at a time. */
  readonly count: (atMs: number) => Promise<number>;
}

export interface DueWorkDeps {
  readonly background: Background;
  readonly now: () => Date;
}

/** Due work of one kind. */
export interface DueWork {
  /**
   * Runs a page of due items.
   *
   * @throws if the items cannot be listed
   */
  doDue(): Promise<void>;
  /** Reports how many items are overdue. */
  reportOverdue(): Promise<void>;
}

/** Maximum items per run. */
const maxItems = 64;
/** Maximum pages to read per run. The next run continues after the last one. */
const maxPages = 16;
/** Initial retry delay of a failed item, in milliseconds. Each failure doubles it. */
const minRetryMs = 1000;
const maxRetryMs = 3_600_000;
/** Milliseconds after which a due item counts as overdue. */
const overdueMs = 60_000;

const beginning: DuePosition = { dueAtMs: -1, position: -1 };

/** Retry state of a failed item. */
interface Retry {
  readonly failures: number;
  readonly notBeforeMs: number;
  /** Why it failed last. */
  readonly message: string;
}

/**
 * Creates a runner for work of one kind. It keeps only failures in memory, so a new process starts with
 * everything that is due.
 */
export function createDueWork({ work, list, count }: DueKind, { background, now }: DueWorkDeps): DueWork {
  background.started(work);
  const retries = new Map<string, Retry>();
  let after = beginning;

  /** Pages through due items, skipping those that wait for a retry. */
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
  /** Forgets items that are no longer due because another server processed them. */
  const forgetGone = (atMs: number): void => {
    for (const [name, { notBeforeMs }] of retries) if (notBeforeMs + maxRetryMs < atMs) retries.delete(name);
  };
  const attempt = async (item: DueItem): Promise<void> => {
    const name = nameItem(item);
    try {
      await item.run();
      retries.delete(name);
    } catch (error) {
      const last = retries.get(name);
      const failures = (last?.failures ?? 0) + 1;
      const message = error instanceof Error ? error.message : String(error);
      const delayMs = Math.min(minRetryMs * 2 ** (failures - 1), maxRetryMs);
      retries.set(name, { failures, notBeforeMs: now().getTime() + delayMs, message });
      background.failed({ work, error, about: item.about, isRepeated: last?.message === message });
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
