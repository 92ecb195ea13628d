/** Opens the crypto provider and the password checks. */
import type { Logger } from "pino";
import type { MeasurePart } from "./calls/call-span.ts";
import type { Config } from "./config.ts";
import { createCryptoProvider } from "./crypto/create-provider.ts";
import { type CurrentCall, type MeasureOperation, queueProvider } from "./crypto/queued-provider.ts";
import { WorkQueue } from "./crypto/work-queue.ts";
import { createPasswordLane, type PasswordLane } from "./identity/password-lane.ts";
import type { Metrics } from "./server/metrics.ts";
import { countCryptoThreads } from "./settings/crypto-settings.ts";

interface CryptoDeps {
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly call: CurrentCall;
  /** Undefined if calls are not traced. */
  readonly measurePart: MeasurePart | undefined;
}

/** Opens the cryptographic provider behind queues that serve callers in turn. */
export async function openCrypto(config: Config, { metrics, logger, call, measurePart }: CryptoDeps) {
  const passwords = createPasswordLane({
    maxChecks: config.maxPasswordChecks,
    maxWaitMs: config.maxBacklogMs,
  });
  const queue = new WorkQueue({
    threads: countCryptoThreads(config),
    maxWaitMs: config.maxQueueMs,
    maxBacklogMs: config.maxBacklogMs,
    busyElsewhere: () => passwords.lane.handed,
  });
  metrics.watchQueue({ queue, passwords: passwords.lane });
  const onFallback = (reason: string) => logger.warn(reason);
  const computing = await createCryptoProvider(config.cryptoProvider, { onFallback });
  metrics.nameProvider(computing);
  const provider = queueProvider(computing, queue, call, measurePart && measureOperations(measurePart));
  return { provider, passwords: measurePart ? measurePasswords(passwords, measurePart) : passwords };
}

/** Records the operation and the algorithm, never the inputs. */
function measureOperations(measurePart: MeasurePart): MeasureOperation {
  return (operation, algorithm, work) =>
    measurePart(
      `crypto ${operation}`,
      { "qsp.crypto.operation": operation, "qsp.crypto.algorithm": algorithm },
      (part) => work(part?.began),
    );
}

function measurePasswords(passwords: PasswordLane, measurePart: MeasurePart): PasswordLane {
  const attributes = { "qsp.crypto.operation": "verify password", "qsp.crypto.algorithm": "scrypt" };
  return {
    lane: passwords.lane,
    verify: (...input) => measurePart("crypto verify password", attributes, () => passwords.verify(...input)),
  };
}
