import { randomUUID } from "node:crypto";
import { type RegisterDeviceRequest, RegisterDeviceResponseSchema } from "#gen/iot/iot_service_pb.ts";
import { refuse } from "../../errors.ts";
import type { CallerInput } from "../../identity/principal.ts";
import type { UserStore } from "../../identity/users.ts";
import { messageCodec } from "../../records/idempotency.ts";
import { isSeenBy, type Principal } from "../../records/ownership.ts";
import { lendSecretOf } from "../../secrets/sealed-keys.ts";
import { readGivenKey, withGivenOrFreshKey } from "../fields.ts";
import type { ServiceDeps } from "../service-deps.ts";
import { type Device, deviceAlgorithm, type IotStore, vendorAlgorithm } from "./store.ts";
import { deviceQuota } from "./tables.ts";

export interface IotDeps extends ServiceDeps {
  readonly devices: IotStore;
  /** Undefined on an open server. */
  readonly users: UserStore | undefined;
  /** Limits of open challenges for a client network; 0 for no limit. */
  readonly challengeLimits: { readonly perDevice: number; readonly perClient: number };
}

/**
 * Registers a device. If the server generates the key pair, it returns the seed once; for a simulated device,
 * it keeps the seed sealed instead.
 *
 * @throws KEY_INVALID, IDEMPOTENCY_KEY_REUSED, QUOTA_EXCEEDED
 */
export function registerDevice(
  { provider, store, devices, now }: IotDeps,
  req: RegisterDeviceRequest,
  { owner, idempotentCall }: CallerInput,
) {
  const given = readGivenKey(provider, deviceAlgorithm, req, "publicKey");
  const vendor = readGivenKey(provider, vendorAlgorithm, req, "vendorPublicKey");
  const { deviceName, deviceType, simulated: isSimulated } = req;
  return store.runIdempotent(idempotentCall, messageCodec(RegisterDeviceResponseSchema), async (write) => {
    await store.requireRoom(deviceQuota, owner);
    return withGivenOrFreshKey(provider, deviceAlgorithm, given, (publicKey, secretKey) => {
      const device: Device = {
        deviceId: `device-${randomUUID()}`,
        deviceName,
        deviceType,
        publicKey: publicKey.exportRaw(),
        isSimulated,
        vendorPublicKey: vendor?.exportRaw() ?? new Uint8Array(),
        hasSigningContexts: req.signingContexts,
        owner,
        registeredAt: now(),
      };
      return lendSecretOf(secretKey, (seed) =>
        write(async (transaction) => {
          await devices.insert(transaction, device, isSimulated ? seed : undefined);
          return {
            deviceId: device.deviceId,
            publicKey: device.publicKey,
            publicKeyPem: publicKey.toPem(),
            algorithm: deviceAlgorithm,
            registrationStatus: "REGISTERED",
            // A copy, because the seed is wiped before the response is written.
            ...(seed && !isSimulated && { privateKey: Uint8Array.from(seed) }),
          };
        }),
      );
    });
  });
}

/**
 * @throws DEVICE_NOT_FOUND, even for a device that exists but belongs to another user
 */
export async function requireDevice(
  devices: IotStore,
  deviceId: string,
  principal: Principal,
): Promise<Device> {
  const device = await devices.find(deviceId);
  if (device !== undefined && mayActFor(principal, device)) return device;
  throw deviceNotFound(deviceId);
}

export function deviceNotFound(deviceId: string): Error {
  return refuse("DEVICE_NOT_FOUND", `device ${deviceId} does not exist`, { deviceId });
}

/** Returns whether a principal may act for a device: only its owner and the device itself may. */
export function mayActFor(principal: Principal, device: Pick<Device, "deviceId" | "owner">): boolean {
  return principal.deviceId === undefined
    ? isSeenBy(principal, device)
    : principal.deviceId === device.deviceId;
}
