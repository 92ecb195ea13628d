/** iot.IotService: unpack, call, pack. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { DeviceSchema, IotService, SendTelemetryRequest } from "#gen/iot/iot_service_pb.ts";
import { readClientAddress } from "../../calls/call-values.ts";
import { createSignCheck } from "../../crypto/can-sign.ts";
import { findNetwork } from "../../http/networks.ts";
import { readCaller, readPrincipal } from "../../identity/principal.ts";
import { partsOf, readList } from "../fields.ts";
import { authenticateDevice, issueChallenge } from "./authenticate.ts";
import { reportFirmware, updateFirmware, updateFirmwareStream } from "./firmware.ts";
import { type IotDeps, registerDevice } from "./register.ts";
import { removeDevice } from "./remove.ts";
import { simulatedSign } from "./simulated-sign.ts";
import { deviceAlgorithm, type ListedDevice, vendorAlgorithm } from "./store.ts";
import { createReadingChecks, type Reading, type ReadingVerdict } from "./telemetry.ts";

export interface IotServiceDeps extends IotDeps {
  /** Issues a token to an authenticated device. */
  readonly issueToken: (deviceId: string) => Promise<{ token: string; expiresAt: Date }>;
}

export function iotService(deps: IotServiceDeps): ServiceImpl<typeof IotService> {
  const { provider, store, devices, issueToken } = deps;
  const readings = createReadingChecks(deps);
  const listWorking = createSignCheck(provider, [deviceAlgorithm, vendorAlgorithm]);
  return {
    registerDevice: (req, context) => registerDevice(deps, req, readCaller(context)),
    issueChallenge: async ({ deviceId }, context) => {
      const { challenge, expiresAt } = await issueChallenge(
        deps,
        deviceId,
        findNetwork(readClientAddress(context)),
      );
      return { challenge, expiresAt: timestampFromDate(expiresAt) };
    },
    authenticate: async (req) => {
      const reason = await authenticateDevice(deps, req);
      if (reason !== undefined) return { authenticated: false, reason };
      const { token, expiresAt } = await issueToken(req.deviceId);
      return { authenticated: true, token, expiresAt: timestampFromDate(expiresAt) };
    },
    sendTelemetry: async (req, context) => packVerdict(await readings.check(req, readPrincipal(context))),
    async *streamTelemetry(requests, context) {
      const verdicts = readings.checkStream(readingsOf(requests), readPrincipal(context));
      for await (const verdict of verdicts) yield packVerdict(verdict);
    },
    updateFirmware: ({ firmware, ...header }, context) =>
      updateFirmware(deps, header, [firmware], readCaller(context)),
    updateFirmwareStream: (requests, context) =>
      updateFirmwareStream(deps, partsOf(requests), readCaller(context)),
    reportFirmware: async (req, context) => ({
      reportedAt: timestampFromDate(await reportFirmware(deps, req, readPrincipal(context))),
    }),
    listDevices: async (fields, context) => {
      const { rows, ...page } = await readList(devices, fields, { principal: readPrincipal(context) });
      return { ...page, devices: rows.map(packDevice) };
    },
    removeDevice: async ({ deviceId }, context) => {
      await removeDevice(deps, deviceId, readPrincipal(context));
      return { deviceId, registrationStatus: "REMOVED" };
    },
    simulatedSign: async (req, context) => ({
      signature: await simulatedSign(deps, req, readPrincipal(context)),
    }),
    getHealth: async () => {
      const [deviceCount, working] = await Promise.all([
        store.ifReachable(() => devices.count()),
        listWorking(),
      ]);
      const mlDsa44Available = working.has(deviceAlgorithm);
      const mlDsa87Available = working.has(vendorAlgorithm);
      const isUp = deviceCount !== undefined && mlDsa44Available && mlDsa87Available;
      return {
        serviceStatus: isUp ? "UP" : "DOWN",
        ...(deviceCount !== undefined && { deviceCount }),
        mlDsa44Available,
        mlDsa87Available,
      };
    },
  };
}

async function* readingsOf(
  requests: AsyncIterable<{ readonly reading?: SendTelemetryRequest | undefined }>,
): AsyncGenerator<Reading> {
  // The proto's rules ensure that each request has a reading.
  for await (const { reading } of requests) if (reading) yield reading;
}

function packVerdict({ reason, receivedAt }: ReadingVerdict) {
  return { verified: reason === "", reason, receivedAt: timestampFromDate(receivedAt) };
}

function packDevice({
  record: device,
  isIntact,
  state,
}: ListedDevice): MessageInitShape<typeof DeviceSchema> {
  const { deviceId } = device;
  if (!isIntact) return { deviceId, registrationStatus: "DAMAGED" };
  const { lastSeenAt, readingForm, firmwareVersion, firmwareHash } = state;
  return {
    deviceId,
    deviceName: device.deviceName,
    deviceType: device.deviceType,
    publicKey: device.publicKey,
    algorithm: deviceAlgorithm,
    registrationStatus: "REGISTERED",
    simulated: device.isSimulated,
    ...(device.hasSigningContexts && { signingContexts: true }),
    ...(readingForm && { readingForm }),
    registeredAt: timestampFromDate(device.registeredAt),
    ...(lastSeenAt && { lastSeenAt: timestampFromDate(lastSeenAt) }),
    ...(firmwareVersion !== undefined && { firmwareVersion }),
    ...(firmwareHash !== undefined && { firmwareHash }),
    ...packReport(state),
  };
}

function packReport({
  reportedPath: targetPath,
  reportedVersion: version = "",
  reportedHash: firmwareHash,
  reportedAt: at,
  previousVersion = "",
}: ListedDevice["state"]): Pick<MessageInitShape<typeof DeviceSchema>, "reportedFirmware"> | undefined {
  if (targetPath === undefined || firmwareHash === undefined || at === undefined) return undefined;
  const reportedAt = timestampFromDate(at);
  return { reportedFirmware: { targetPath, version, firmwareHash, reportedAt, previousVersion } };
}
