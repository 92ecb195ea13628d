/** Decides the number of event loops. */
import os from "node:os";
import { type Config, ConfigError } from "../config.ts";

/** The most event loops that "auto" chooses. */
const maxAuto = 8;

/**
 * The event loops that serve the port. "auto" leaves half of the cores to cryptography and the store, which take about
 * as much time for a signature as the event loop does.
 *
 * @throws ConfigError if the system cannot spread connections over several
 */
export function countWorkers({ workers }: Config, platform: NodeJS.Platform = process.platform): number {
  // Of the systems that we test, only Linux spreads the connections of a port (SO_REUSEPORT).
  const canShare = platform === "linux";
  if (workers > 1 && !canShare)
    throw new ConfigError(`--workers: several event loops can share a port only on Linux; use 1`);
  if (workers > 0) return workers;
  return canShare ? Math.min(maxAuto, Math.max(1, Math.floor(os.availableParallelism() / 2))) : 1;
}
