/** Finds the owners of devices, for the check of device tokens. */
import type { FindDeviceOwner } from "../../identity/authenticate.ts";
import { openTable } from "../../records/record-table.ts";
import type { Store } from "../../store/store.ts";
import { deviceTable } from "./tables.ts";

export function createDeviceOwners(store: Store): FindDeviceOwner {
  const devices = openTable(store, deviceTable);
  return async (deviceId) => (await devices.findIntact({ deviceId }))?.owner;
}
