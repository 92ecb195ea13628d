/** The thread of one worker: a whole server on the port that it shares with others. */
import { parentPort, workerData } from "node:worker_threads";
import { type App, createApp } from "../app.ts";
import { explainStoreFailure } from "../cli/operator/explain-failure.ts";
import { explainOperatorError } from "../cli/operator/store-verb.ts";
import { describeLocation } from "../database/database.ts";
import { refuse } from "../errors.ts";
import { chargeCall } from "../server/interceptors/caller.ts";
import { openLog } from "../server/log.ts";
import type { Exposition } from "../server/metrics.ts";
import { explainFailure } from "../services/explain-failure.ts";
import { servicePackages } from "../services/registry.ts";
import type { OpenModule } from "../services/service-module.ts";
import { storeSettings } from "../settings/store-settings.ts";
import { openSharedMemory } from "../shared-memory/shared-memory.ts";
import { toConfigError } from "../start-app.ts";
import { handleUncaughtErrors } from "../uncaught-errors.ts";
import type { PlaceServices } from "./app-worker.ts";
import { forwardServices, offerServices } from "./bridge/service-bridge.ts";
import type { FromWorker, StartFailure, ToWorker, WorkerInput } from "./messages.ts";

const { worker, config, memory, port } = workerData as WorkerInput;
const isHome = worker === 0;
const logger = openLog({ level: config.logLevel });
const send = (message: FromWorker): void => parentPort?.postMessage(message);

/** Milliseconds between signs of life. */
const beatMs = 500;
/** Milliseconds that a worker that failed has to end its calls. */
const maxFailMs = 2000;

/** Services that hold state, at home. */
const offered: OpenModule["services"][number][] = [];
/** The same services elsewhere. One forwarder has all of them, because it numbers the calls of its port. */
const forwarder = forwardServices(
  servicePackages
    .filter(({ hasState }) => hasState)
    .flatMap(({ files }) => files.flatMap(({ services }) => services)),
);
const place: PlaceServices = async ({ hasState, files }, open) => {
  if (!hasState) return open();
  if (isHome) {
    const opened = await open();
    offered.push(...opened.services);
    return opened;
  }
  const own = new Set(files.flatMap(({ services }) => services));
  return { services: forwarder.services.filter(({ service }) => own.has(service)) };
};

const exposing = new Map<number, (exposition: Exposition) => void>();
let lastId = 0;
const exposeAll = (): Promise<Exposition> =>
  new Promise((resolve) => {
    lastId += 1;
    exposing.set(lastId, resolve);
    send({ kind: "expose metrics", id: lastId });
  });

const shared = openSharedMemory(memory, worker);
setInterval(() => shared.heartbeat.increment(), beatMs).unref();

const othersEnded = Promise.withResolvers<void>();
let app: App | undefined;
/** Ends the calls with UNAVAILABLE. The supervisor starts another worker. */
const endFailed = (): void => {
  setTimeout(() => process.exit(1), maxFailMs);
  const reason = refuse("SHUTTING_DOWN", "an event loop of the server failed and is replaced; try again");
  endAfterFailure(reason).catch(() => {});
};
handleUncaughtErrors({
  logger: logger.child({ worker }),
  count: () => app?.metrics.uncaughtError(),
  end: endFailed,
});

try {
  const opened = await createApp(config, logger, {
    worker: { isFirst: isHome, memory: shared, place, exposeAll },
    onFailure: (error) => {
      logger.fatal({ err: error, worker }, "an event loop cannot use the store any more");
      endFailed();
    },
  });
  app = opened;
  send({
    kind: "opened",
    routes: opened.listRoutes(),
  });
  parentPort?.on("message", (message: ToWorker) => {
    if (message.kind === "metrics") {
      exposing.get(message.id)?.(message.exposition);
      exposing.delete(message.id);
    } else if (message.kind === "bridge") {
      if (isHome) offerServices(offered, message.port, { runAs: chargeCall, explainFailure });
      else forwarder.connect(message.port);
    } else if (message.kind === "dump metrics") {
      // Without an answer, the supervisor keeps the last one.
      opened.metrics.dump().then(
        (dump) => send({ kind: "metrics dump", id: message.id, dump }),
        () => {},
      );
    } else if (message.kind === "fail") {
      throw new Error("told to fail");
    } else if (message.kind === "hang") {
      for (;;);
    } else if (message.kind === "finish") {
      othersEnded.resolve();
    } else {
      // Open resources would keep the thread alive.
      const end = (): void => process.exit();
      stop(opened).then(end, end);
    }
  });
  const address = await opened.server.listen(port, config.host);
  send({ kind: "ready", address, cryptoVersion: opened.cryptoVersion });
} catch (error) {
  send({ kind: "failed", failure: describe(error) });
}

/** Stops in order: a service with state answers forwarded calls until no other worker has any. */
async function stop(opened: App): Promise<void> {
  await opened.server.close();
  if (isHome) await othersEnded.promise;
  await opened.close();
}

/** Ends the calls, and sends the metrics to the supervisor. */
async function endAfterFailure(reason: Error): Promise<void> {
  try {
    await app?.server.close(0, reason);
    if (app !== undefined) send({ kind: "metrics dump", id: 0, dump: await app.metrics.dump() });
  } finally {
    process.exit(1);
  }
}

function describe(error: unknown): StartFailure {
  const store = describeLocation(storeSettings(config).location);
  const explained = explainOperatorError(explainStoreFailure(toConfigError(error), store));
  const shown = explained ?? (error instanceof Error ? error : new Error(String(error)));
  const code = error instanceof Error && "code" in error ? String(error.code) : undefined;
  return { code, message: shown.message, exitCode: explained?.exitCode, stack: shown.stack };
}
