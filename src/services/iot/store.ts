/** What the device service keeps: devices with what they last did, and challenges. */
import { RecordDamagedError } from "../../database/store-error.ts";
import { column, type ListedRow, type RecordOf, type RowOf } from "../../records/columns.ts";
import type { Principal } from "../../records/ownership.ts";
import { type PageRequest, sizeInJson } from "../../records/pages.ts";
import { recordQuota } from "../../records/quota.ts";
import { openTable } from "../../records/record-table.ts";
import {
  describeSealedKey,
  intact,
  requireIntact,
  type TableDeclaration,
} from "../../records/table-declaration.ts";
import type { SealedKey } from "../../secrets/sealed-keys.ts";
import type { Store, WriteTransaction } from "../../store/store.ts";
import { createChallengeStore } from "./challenge-store.ts";
import {
  acceptReading,
  type DeviceState,
  newDeviceState,
  type SignedReading,
  type stateColumns,
  stateTable,
} from "./device-state.ts";

/** The algorithms of devices and of firmware vendors. */
export const deviceAlgorithm = "ML-DSA-44";
export const vendorAlgorithm = "ML-DSA-87";

const columns = {
  deviceId: column.text("device_id"),
  deviceName: column.text("device_name"),
  deviceType: column.text("device_type"),
  /** Raw ML-DSA-44. */
  publicKey: column.bytes("public_key"),
  /** Whether the service can sign as the device. */
  isSimulated: column.flag("is_simulated"),
  /** Raw ML-DSA-87; empty if no vendor is pinned. */
  vendorPublicKey: column.bytes("vendor_public_key"),
  /** Who registered it. */
  owner: column.text("owner"),
  registeredAt: column.time("registered_at_ms"),
  /** Whether it signs with a context for each use. */
  hasSigningContexts: column.namedFlag("signing_contexts", "signing contexts"),
};

/** A device, as it was registered. */
export type Device = RecordOf<typeof columns>;

declare module "../../database/schema.ts" {
  interface Schema {
    /** A device, and what it last did: `state_tag` binds that to the device. */
    iot_devices: ListedRow<typeof columns> & RowOf<typeof stateColumns> & { state_tag: string };
  }
}

/** A reading whose signature verified, and whose it is. */
export interface DeviceReading extends SignedReading {
  readonly deviceId: string;
}

/** Names the list of all devices, for page tokens and counts. */
export const deviceList = "iot_devices";
/** Counts the devices of an owner. */
export const deviceQuota = recordQuota(deviceList, "devices");

const deviceTable: TableDeclaration<typeof columns> = {
  name: deviceList,
  columns,
  key: ["deviceId"],
  owner: "owner",
  quota: deviceQuota,
  describe: ({ deviceId }) => `device ${deviceId}`,
  // A list has no keys of vendors.
  sizeOfListed: ({ vendor_public_key: _, ...row }) => sizeInJson(row),
};

/** Names a simulated device's sealed secret key. */
export function nameSealedKey(device: Device): SealedKey {
  return describeSealedKey(deviceTable, deviceAlgorithm, device);
}

/** A device as lists have it. */
export type ListedDevice = Awaited<ReturnType<IotStore["list"]>>["rows"][number];

/** The devices of the service. */
export type IotStore = ReturnType<typeof createIotStore>;

/** Makes the store of the service on the store of all. */
export function createIotStore(store: Store) {
  const devices = openTable(store, deviceTable);
  const states = openTable(store, stateTable);
  /** Remembers what a device did, within a transaction. */
  const saveState = async (transaction: WriteTransaction, deviceId: string, state: DeviceState) => {
    await states.update(transaction, intact({ ...state, deviceId }), state);
  };
  const acceptReadings = store.batch(async (transaction, readings: readonly DeviceReading[]) => {
    const deviceIds = readings.map(({ deviceId }) => deviceId);
    const found = await states.findSome("deviceId", deviceIds, transaction.db);
    const known = new Map<string, DeviceState>();
    for (const state of found)
      known.set(state.record.deviceId, requireIntact(state, stateTable.describe(state.record)));
    const changed = new Map<string, DeviceState>();
    const faults = readings.map((reading) => {
      const { deviceId } = reading;
      const state = changed.get(deviceId) ?? known.get(deviceId);
      if (state === undefined) throw new RecordDamagedError(`device ${deviceId}`);
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
    count: devices.count,
    /** @throws RecordDamagedError */
    find: (deviceId: string) => devices.findIntact({ deviceId }),
    /** Lists devices with their states; one is intact if its state is so too. */
    async list(request: PageRequest, principal: Principal) {
      const page = await devices.list(request, principal);
      const rows = page.rows.map(({ record, isIntact, row }) => {
        const state = states.readRow(row);
        return { record, isIntact: isIntact && state.isIntact, state: state.record };
      });
      return { ...page, rows };
    },
    /** Keeps a device, within a transaction. @param secret of a simulated one @throws QuotaExceededError */
    insert: (
      transaction: WriteTransaction,
      device: Device,
      secret: Uint8Array | undefined,
    ): Promise<void> => {
      const state = states.toTaggedRow({ ...newDeviceState, deviceId: device.deviceId });
      return devices.insert(transaction, device, secret, state);
    },
    /** Reads what a device last did, within a transaction. @throws RecordDamagedError */
    readState: ({ db }: WriteTransaction, deviceId: string) => states.findIntact({ deviceId }, { db }),
    saveState,
    /** Accepts a reading; those of one moment share a transaction. @returns what is wrong; undefined if it is accepted */
    acceptReading: (reading: DeviceReading) => acceptReadings(reading),
  };
}
