/** iot.IotService: unpack, call, pack. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { DeviceSchema, IotService, SendTelemetryRequest } from "#gen/iot/iot_service_pb.ts";
import { canSign } from "../../crypto/can-sign.ts";
import { partsOf, readPage } from "../../fields.ts";
import type { OnceCall } from "../../storage/once.ts";
import { authenticateDevice, issueChallenge } from "./authenticate.ts";
import { updateFirmware, updateFirmwareStream } from "./firmware.ts";
import { type IotParts, registerDevice } from "./register.ts";
import { simulatedSign } from "./simulated-sign.ts";
import { deviceAlgorithm, deviceList, type ListedDevice, vendorAlgorithm } from "./store.ts";
import { createReadingChecks, type Reading, type ReadingVerdict } from "./telemetry.ts";

/** What the service needs. */
export interface IotServiceParts extends IotParts {
  /** Issues a token to a device that proved who it is. */
  readonly issueToken: (deviceId: string) => Promise<{ token: string; expiresAt: Date }>;
  /** Names who makes a call. */
  readonly userOf: (context: HandlerContext) => string;
  /** Tells under which idempotency key a call came, if it has one. */
  readonly onceOf: (context: HandlerContext) => OnceCall | undefined;
}

/** Makes the implementation. */
export function iotService(parts: IotServiceParts): ServiceImpl<typeof IotService> {
  const { provider, store, devices, issueToken, userOf, onceOf } = parts;
  const readings = createReadingChecks(parts);
  return {
    registerDevice: (req, context) =>
      registerDevice(parts, { ...req, owner: userOf(context), once: onceOf(context) }),
    issueChallenge: async ({ deviceId }) => {
      const { challenge, expiresAt } = await issueChallenge(parts, deviceId);
      return { challenge, expiresAt: timestampFromDate(expiresAt) };
    },
    authenticate: async (req) => {
      const reason = await authenticateDevice(parts, req);
      if (reason !== undefined) return { authenticated: false, reason };
      const { token, expiresAt } = await issueToken(req.deviceId);
      return { authenticated: true, token, expiresAt: timestampFromDate(expiresAt) };
    },
    sendTelemetry: async (req) => packVerdict(await readings.check(readReading(req))),
    async *streamTelemetry(requests) {
      for await (const verdict of readings.checkStream(readingsOf(requests))) yield packVerdict(verdict);
    },
    updateFirmware: ({ firmware, ...header }, { signal }) =>
      updateFirmware(parts, header, [firmware], signal),
    updateFirmwareStream: (requests, { signal }) => updateFirmwareStream(parts, partsOf(requests), signal),
    listDevices: async (fields) => {
      const { rows, nextPageToken } = await devices.list(readPage(fields, deviceList));
      return { devices: rows.map(packDevice), nextPageToken, totalSize: await devices.count() };
    },
    simulatedSign: async ({ deviceId, data }) => ({ signature: await simulatedSign(parts, deviceId, data) }),
    getHealth: async () => {
      const [deviceCount, mlDsa44Available, mlDsa87Available] = await Promise.all([
        store.ifReachable(devices.count),
        canSign(provider, deviceAlgorithm),
        canSign(provider, vendorAlgorithm),
      ]);
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

function readReading({ deviceId, telemetry, signature, sequence }: SendTelemetryRequest): Reading {
  return { deviceId, telemetry, signature, sequence };
}

async function* readingsOf(
  requests: AsyncIterable<{ readonly reading?: SendTelemetryRequest | undefined }>,
): AsyncGenerator<Reading> {
  // The proto's rules see to it that each request has a reading.
  for await (const { reading } of requests) if (reading) yield readReading(reading);
}

function packVerdict({ reason, receivedAt }: ReadingVerdict) {
  return { verified: reason === "", reason, receivedAt: timestampFromDate(receivedAt) };
}

function packDevice(device: ListedDevice): MessageInitShape<typeof DeviceSchema> {
  const { lastSeenAt, firmwareVersion, firmwareHash } = device;
  return {
    deviceId: device.deviceId,
    deviceName: device.deviceName,
    deviceType: device.deviceType,
    publicKey: device.isIntact ? device.publicKey : new Uint8Array(),
    algorithm: deviceAlgorithm,
    registrationStatus: device.isIntact ? "REGISTERED" : "DAMAGED",
    simulated: device.isSimulated,
    registeredAt: timestampFromDate(device.registeredAt),
    ...(lastSeenAt && { lastSeenAt: timestampFromDate(lastSeenAt) }),
    ...(firmwareVersion !== undefined && { firmwareVersion }),
    ...(firmwareHash !== undefined && { firmwareHash }),
  };
}
