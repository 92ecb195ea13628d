/** A log on a store, with a fake clock. */
import { onTestFinished } from "vitest";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import type { Store } from "../../../src/store/store.ts";
import type { AtEnd } from "../../../test/support/at-end.ts";
import { makeSqlitePlace } from "../../../test/support/on-both.ts";
import { type Log, openLog } from "../log.ts";
import { createAuditSource } from "../source.ts";

/** The log's origin. */
export const origin = "log.example/audit";

/** One clock shared by all of a store's logs. */
let nowMs = Date.now();

function skipInterval(): Date {
  nowMs += 60_000;
  return new Date(nowMs);
}

/** A log whose interval has passed at every call, unless it has another clock. */
export async function openAuditLog(
  store: Store,
  { origin: given = origin, now = skipInterval, atEnd = onTestFinished as AtEnd } = {},
): Promise<Log> {
  const provider = await createCryptoProvider("openssl");
  atEnd(() => provider.close());
  const log = await openLog({ store, provider, source: createAuditSource(store), origin: given, now });
  atEnd(() => log.close());
  return log;
}

/**
 * Fills a store for tests that each work on a copy.
 *
 * @returns the directory of the closed store
 */
export async function makeFilledStore(
  atEnd: AtEnd,
  fill: (store: Store, log: Log) => Promise<void>,
): Promise<string> {
  const place = await makeSqlitePlace(atEnd);
  const store = await place.open({ atEnd });
  const log = await openAuditLog(store, { atEnd });
  await fill(store, log);
  await log.close();
  await store.close();
  return place.directory;
}
