/** Opens what computes: the cryptographic provider and the checks of passwords. */
import type { Logger } from "pino";
import type { Config } from "./config.ts";
import { createCryptoProvider } from "./crypto/create-provider.ts";
import type { CryptoProvider } from "./crypto/provider.ts";
import { queueProvider } from "./crypto/queued-provider.ts";
import { systemCaller, WorkQueue } from "./crypto/work-queue.ts";
import { createPasswordLane } from "./identity/password-lane.ts";
import { currentCaller } from "./server/interceptors/caller.ts";
import type { Metrics } from "./server/metrics.ts";
import { countCryptoThreads } from "./settings/crypto-settings.ts";
import type { SharedMemory } from "./shared-memory/shared-memory.ts";

/** The event loop that computes, if there are several. */
interface CryptoWorker {
  readonly isFirst: boolean;
  readonly memory: Pick<SharedMemory, "passwordPlaces" | "slowPlaces" | "computing">;
}

/** Opens the cryptographic provider, behind queues that serve callers in turn. */
export async function openCrypto(
  config: Config,
  { metrics, logger, worker }: { metrics: Metrics; logger: Logger; worker: CryptoWorker | undefined },
) {
  const passwords = createPasswordLane({
    maxChecks: config.maxPasswordChecks,
    maxWaitMs: config.maxBacklogMs,
    places: worker?.memory.passwordPlaces,
  });
  const queue = new WorkQueue({
    threads: countCryptoThreads(config),
    maxWaitMs: config.maxQueueMs,
    maxBacklogMs: config.maxBacklogMs,
    busyElsewhere: () => passwords.lane.handed,
    shared: worker?.memory,
  });
  metrics.watchQueue({ queue, passwords: passwords.lane });
  const onFallback = (reason: string) => worker?.isFirst !== false && logger.warn(reason);
  const computing = await createCryptoProvider(config.cryptoProvider, { onFallback });
  metrics.nameProvider(computing);
  // Work outside of any call is the server's own.
  const provider: CryptoProvider = queueProvider(computing, queue, () => currentCaller() ?? systemCaller);
  return { provider, passwords };
}
