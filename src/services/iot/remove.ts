import type { Principal } from "../../records/ownership.ts";
import { deviceNotFound, type IotDeps } from "./register.ts";

/** Stopping a stolen device must be possible on a full disk. */
const safety = { priority: "safety" } as const;

/**
 * Removes a device. Every use of a device or its token reads the device's record, so none succeeds after this.
 *
 * @throws DEVICE_NOT_FOUND
 */
export async function removeDevice(
  { store, devices }: IotDeps,
  deviceId: string,
  principal: Principal,
): Promise<void> {
  const isRemoved = await store.write(
    (transaction) => devices.remove(transaction, deviceId, principal),
    safety,
  );
  if (!isRemoved) throw deviceNotFound(deviceId);
}
