/** Reports to operators and load balancers when the store cannot be written. */
import type { Logger } from "pino";
import type { Metrics } from "./server/metrics.ts";
import type { Server } from "./server/server.ts";
import { listWriting, type ServicePackage } from "./services/registry.ts";
import type { Store } from "./store/store.ts";

export interface WatchStoreDeps {
  readonly server: Pick<Server, "health">;
  readonly metrics: Pick<Metrics, "storeWritable">;
  readonly logger: Pick<Logger, "error" | "info">;
  /** The packages that the server serves. */
  readonly packages: readonly ServicePackage[];
}

/**
 * Watches the store.
 *
 * @returns a function that stops the watch
 */
export function watchStore(
  { watchWrites }: Pick<Store, "watchWrites">,
  { server, metrics, logger, packages }: WatchStoreDeps,
): () => void {
  const writing = listWriting(packages);
  return watchWrites((problem) => {
    const sentence = problem && `the store cannot be written: ${problem.reason}`;
    metrics.storeWritable(problem === undefined);
    server.health.report(sentence, writing);
    if (problem === undefined) logger.info("the store can be written again");
    else logger.error({ err: problem.cause }, sentence);
  });
}
