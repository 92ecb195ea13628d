/** What one event loop among several gives its app. */
import type { Metrics } from "../server/metrics.ts";
import type { ServicePackage } from "../services/registry.ts";
import type { OpenModule } from "../services/service-module.ts";
import type { SharedMemory } from "../shared-memory/shared-memory.ts";

/** Opens the services of a package, or replaces them. */
export type PlaceServices = (
  servicePackage: ServicePackage,
  open: () => Promise<OpenModule>,
) => Promise<OpenModule>;

/** The app of one event loop among several. */
export interface AppWorker {
  /** The first one tells the operator what all have in common. */
  readonly isFirst: boolean;
  readonly memory: SharedMemory;
  /** Forwards calls of packages that are at home on another event loop. */
  readonly place: PlaceServices;
  /** The metrics of all event loops. */
  readonly exposeAll: Metrics["expose"];
}
