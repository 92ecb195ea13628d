import { createServiceImplSpec } from "@connectrpc/connect";
import { RepositoryService } from "#gen/tuf/repository_service_pb.ts";
import { createDefiStore } from "../../src/services/defi/store.ts";
import type { OpenServices } from "../../src/services/service-module.ts";
import { createContentStore } from "./contents.ts";
import type { TufDeps } from "./deps.ts";
import { createReaderCheck } from "./get-file.ts";
import { exposeRepositories } from "./metrics.ts";
import { startSchedule } from "./schedule.ts";
import { repositoryService } from "./service.ts";
import { maxBytesPerUser, maxTargetBytes, tufPrivate } from "./settings.ts";
import { createTufStore } from "./store.ts";

export { examples } from "./examples.ts";

export const openServices: OpenServices = (opened) => {
  const { store, keyDomain, valueFor, metrics, now } = opened;
  const limits = { perTarget: valueFor(maxTargetBytes), perOwner: valueFor(maxBytesPerUser) };
  const contents = createContentStore(store, limits, now);
  const deps: TufDeps = {
    ...keyDomain.open(),
    tuf: createTufStore(store),
    governance: createDefiStore(store),
    contents,
    requireReader: valueFor(tufPrivate) ? createReaderCheck(opened) : undefined,
  };
  const stopSchedule = startSchedule(deps, exposeRepositories(deps, metrics));
  const stopSweeping = contents.startSweeping();
  return {
    services: [createServiceImplSpec<typeof RepositoryService>(RepositoryService, repositoryService(deps))],
    close: async () => {
      await Promise.all([stopSchedule(), stopSweeping()]);
    },
  };
};
