/** Stores devices with their states, and challenges. */
import type { RecordOf } from "../../records/columns.ts";
import type { Principal } from "../../records/ownership.ts";
import type { PageRequest } from "../../records/pages.ts";
import { type ListQuery, openTable } from "../../records/record-table.ts";
import { intact } from "../../records/table-declaration.ts";
import type { Store } from "../../store/store.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import { createChallengeStore } from "./challenge-store.ts";
import { acceptReading, type DeviceState, newDeviceState, type SignedReading } from "./device-state.ts";
import { deviceTable, stateTable } from "./tables.ts";

export const deviceAlgorithm = "ML-DSA-44";
export const vendorAlgorithm = "ML-DSA-87";

/** A device as registered. */
export type Device = RecordOf<typeof deviceTable.columns>;

/** A reading whose signature verified, with its device. */
export interface DeviceReading extends SignedReading {
  readonly deviceId: string;
}

type DeviceQuery = ListQuery<typeof deviceTable.columns>;

/** A device as lists show it. */
export type ListedDevice = Awaited<ReturnType<IotStore["list"]>>["rows"][number];

export type IotStore = ReturnType<typeof createIotStore>;

export function createIotStore(store: Store) {
  const devices = openTable(store, deviceTable);
  const states = openTable(store, stateTable);
  const saveState = async (transaction: WriteTransaction, deviceId: string, state: DeviceState) => {
    await states.update(transaction, intact({ ...state, deviceId }), state);
  };
  const acceptReadings = store.batch(async (transaction, readings: readonly DeviceReading[]) => {
    const deviceIds = readings.map(({ deviceId }) => deviceId);
    const found = await states.findSome("deviceId", deviceIds, transaction.db);
    const known = new Map<string, DeviceState>();
    for (const state of found) known.set(state.record.deviceId, states.requireIntact(state));
    const changed = new Map<string, DeviceState>();
    const faults = readings.map((reading) => {
      const { deviceId } = reading;
      const state = changed.get(deviceId) ?? known.get(deviceId);
      // Someone removed the device after its signature was checked.
      if (state === undefined) return "DEVICE_NOT_FOUND";
      const next = acceptReading(state, reading);
      if (typeof next === "string") return next;
      changed.set(deviceId, next);
      return undefined;
    });
    for (const [deviceId, state] of changed) await saveState(transaction, deviceId, state);
    return faults;
  });
  return {
    ...createChallengeStore(store),
    nameList: devices.nameList,
    count: devices.count,
    /** @throws RecordDamagedError */
    find: (deviceId: string) => devices.findIntact({ deviceId }),
    /** Lists devices with their states; a device is intact only if its state is intact too. */
    async list(request: PageRequest, query: DeviceQuery) {
      const page = await devices.list(request, query);
      const rows = page.rows.map(({ record, isIntact, row }) => {
        const state = states.readRow(row);
        return { record, isIntact: isIntact && state.isIntact, state: state.record };
      });
      return { ...page, rows };
    },
    /**
     * Stores a device, within a transaction.
     *
     * @param secret only for a simulated device
     * @throws QuotaExceededError
     */
    insert: (
      transaction: WriteTransaction,
      device: Device,
      secret: Uint8Array | undefined,
    ): Promise<void> => {
      const state = states.toTaggedRow({ ...newDeviceState, deviceId: device.deviceId });
      return devices.insert(transaction, device, secret, state);
    },
    /**
     * Removes a device with its state and its sealed key, within a transaction.
     *
     * @returns false if the principal sees no such device
     */
    async remove(transaction: WriteTransaction, deviceId: string, principal: Principal): Promise<boolean> {
      // Even a damaged device can be removed.
      const found = await devices.find({ deviceId }, { principal, db: transaction.db });
      if (found !== undefined) await devices.remove(transaction, found);
      return found !== undefined;
    },
    /**
     * Reads what a device last did, within a transaction.
     *
     * @returns undefined if the device was removed
     * @throws RecordDamagedError
     */
    readState: ({ db }: WriteTransaction, deviceId: string) => states.findIntact({ deviceId }, { db }),
    saveState,
    /**
     * Accepts a reading; concurrent readings share a transaction.
     *
     * @returns the fault; undefined if the reading is accepted
     */
    acceptReading: (reading: DeviceReading) => acceptReadings(reading),
  };
}
