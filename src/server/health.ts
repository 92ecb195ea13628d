/** Implements grpc.health.v1.Health: the status of each service, and of the whole server (the empty name). */
import { create } from "@bufbuild/protobuf";
import { createServiceImplSpec } from "@connectrpc/connect";
import {
  Health,
  type HealthCheckResponse,
  HealthCheckResponseSchema,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "#gen/grpc/health/v1/health_pb.ts";
import { keepBytes } from "../calls/kept-bytes.ts";
import { refuse, serverStopping } from "../errors.ts";

/** Load balancers ask all the time, so each answer is encoded once. */
const answerWith = (status: ServingStatus): HealthCheckResponse =>
  keepBytes(HealthCheckResponseSchema, create(HealthCheckResponseSchema, { status }));
const serving = answerWith(ServingStatus.SERVING);
const notServing = answerWith(ServingStatus.NOT_SERVING);
const unknown = answerWith(ServingStatus.SERVICE_UNKNOWN);

export type HealthBoard = ReturnType<typeof createHealthBoard>;

/** Creates a board on which the server and every listed service are serving. */
export function createHealthBoard(serviceNames: readonly string[]) {
  const statuses = new Map(["", ...serviceNames].map((name) => [name, serving]));
  /** Wake the watchers, which read only the latest status: a slow watcher skips older ones. */
  const watchers = new Set<() => void>();
  let isShutDown = false;
  let problem: string | undefined;

  const wakeAll = (): void => {
    for (const wake of watchers) wake();
  };

  async function* watch(name: string, signal: AbortSignal): AsyncGenerator<HealthCheckResponse> {
    let changed = Promise.withResolvers<void>();
    const wake = (): void => changed.resolve();
    watchers.add(wake);
    signal.addEventListener("abort", wake, { once: true });
    let last: HealthCheckResponse | undefined;
    try {
      while (!signal.aborted) {
        // An unknown service may become known later, so keep the stream open.
        const status = statuses.get(name) ?? unknown;
        if (status !== last) {
          last = status;
          yield status;
        }
        if (isShutDown) throw serverStopping();
        if (status === (statuses.get(name) ?? unknown)) await changed.promise;
        changed = Promise.withResolvers<void>();
      }
      signal.throwIfAborted();
    } finally {
      watchers.delete(wake);
      signal.removeEventListener("abort", wake);
    }
  }

  const set = (serviceName: string, isServing: boolean): void => {
    if (isShutDown) return;
    statuses.set(serviceName, isServing ? serving : notServing);
    wakeAll();
  };

  return {
    /** The health service itself. */
    service: createServiceImplSpec<typeof Health>(Health, {
      check: ({ service }) => {
        const status = statuses.get(service);
        if (status === undefined)
          throw refuse("SERVICE_UNKNOWN", `the service ${service} does not exist`, { service });
        return status;
      },
      list: () => ({ statuses: Object.fromEntries(statuses) }),
      watch: ({ service }, { signal }) => watch(service, signal),
    }),
    /** Why the server is not ready, for readiness probes; undefined if it is. */
    get problem(): string | undefined {
      return isShutDown ? "shutting down" : problem;
    },
    set,
    /**
     * Reports a server problem, or its end with undefined. Meanwhile the affected services are NOT_SERVING. The
     * server as a whole keeps SERVING: otherwise a proxy that checks it would withdraw the calls that still
     * work.
     */
    report(found: string | undefined, serviceNames: readonly string[]): void {
      problem = found;
      for (const name of serviceNames) set(name, found === undefined);
    },
    /** Sets every status to NOT_SERVING permanently, then ends every Watch with SHUTTING_DOWN. */
    shutDown(): void {
      isShutDown = true;
      for (const name of statuses.keys()) statuses.set(name, notServing);
      wakeAll();
    },
  };
}
