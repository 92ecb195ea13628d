import { createServiceImplSpec } from "@connectrpc/connect";
import { IotService } from "#gen/iot/iot_service_pb.ts";
import { poll } from "../../database/poll.ts";
import { deviceUse } from "../../identity/authenticate.ts";
import type { OpenServices } from "../service-module.ts";
import { iotService } from "./service.ts";
import { createIotStore } from "./store.ts";

/** Interval of sweeps for challenges that expired long ago. */
const sweepMs = 60_000;

export { examples } from "./examples.ts";

export const openServices: OpenServices = (deps) => {
  const issueToken = (deviceId: string) => deps.issuer.issue(deviceId, { header: { use: deviceUse } });
  const devices = createIotStore(deps.store);
  const service = iotService({ ...deps, devices, issueToken });
  const { background } = deps.store;
  const stopSweeping = poll({ work: "iot_sweep_challenges", everyMs: sweepMs, background }, () =>
    devices.removeDeadChallenges(deps.now()),
  );
  return {
    services: [createServiceImplSpec<typeof IotService>(IotService, service)],
    close: stopSweeping,
  };
};
