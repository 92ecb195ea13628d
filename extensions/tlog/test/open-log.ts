/** A log on a store, with a clock that the test moves. */
import { onTestFinished } from "vitest";
import { createCryptoProvider } from "../../../src/crypto/create-provider.ts";
import type { Store } from "../../../src/store/store.ts";
import { type Log, openLog } from "../log.ts";
import { createAuditSource } from "../source.ts";

/** The origin of the log. */
export const origin = "log.example/audit";

/** One clock for all logs of a store. */
let nowMs = Date.now();

/** A log whose interval has passed whenever it is asked. */
export async function openAuditLog(store: Store, { origin: given = origin } = {}): Promise<Log> {
  const provider = await createCryptoProvider("openssl");
  onTestFinished(() => provider.close());
  const now = (): Date => {
    nowMs += 60_000;
    return new Date(nowMs);
  };
  const log = await openLog({ store, provider, source: createAuditSource(store), origin: given, now });
  onTestFinished(() => log.close());
  return log;
}
