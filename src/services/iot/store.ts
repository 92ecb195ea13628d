/** What the device service keeps: devices with what they last did, and challenges. */
import { RecordDamagedError } from "../../database/store-error.ts";
import {
  bytes,
  flag,
  namedFlag,
  type PositionColumn,
  type RecordOf,
  type RowOf,
  type TagColumn,
  text,
  time,
} from "../../records/columns.ts";
import type { Principal } from "../../records/ownership.ts";
import { type Page, type PageRequest, sizeInJson } from "../../records/pages.ts";
import { recordQuota } from "../../records/quota.ts";
import { openTable, requireIntact, type Stored, type TableDeclaration } from "../../records/record-table.ts";
import type { SealedKey } from "../../secrets/sealed-keys.ts";
import type { Store, WriteTransaction } from "../../store/store.ts";
import { type ChallengeStore, createChallengeStore } from "./challenge-store.ts";
import {
  acceptReading,
  type DeviceState,
  newDeviceState,
  type ReadingFault,
  type SignedReading,
  type stateColumns,
  stateTable,
} from "./device-state.ts";

/** The algorithms of devices and of firmware vendors. */
export const deviceAlgorithm = "ML-DSA-44";
export const vendorAlgorithm = "ML-DSA-87";

const deviceColumns = {
  deviceId: text("device_id"),
  deviceName: text("device_name"),
  deviceType: text("device_type"),
  /** Raw ML-DSA-44. */
  publicKey: bytes("public_key"),
  /** Whether the service can sign as the device. */
  isSimulated: flag("is_simulated"),
  /** Raw ML-DSA-87; empty if no vendor is pinned. */
  vendorPublicKey: bytes("vendor_public_key"),
  /** Who registered it. */
  owner: text("owner"),
  registeredAt: time("registered_at_ms"),
  /** Whether it signs with a context for each use. */
  hasSigningContexts: namedFlag("signing_contexts", "signing contexts"),
};

/** A device, as it was registered. */
export type Device = RecordOf<typeof deviceColumns>;

declare module "../../database/schema.ts" {
  interface Schema {
    /** A device, and what it last did: `state_tag` binds that to the device. */
    iot_devices: RowOf<typeof deviceColumns> &
      RowOf<typeof stateColumns> &
      PositionColumn &
      TagColumn & { state_tag: string };
  }
}

/** A device as lists have it; intact if its state is so too. */
export interface ListedDevice extends Stored<Device> {
  readonly state: DeviceState;
}

/** A reading whose signature verified, and whose it is. */
export interface DeviceReading extends SignedReading {
  readonly deviceId: string;
}

/** Names the list of all devices, for page tokens and counts. */
export const deviceList = "iot_devices";

/** Counts the devices of an owner. */
export const deviceQuota = recordQuota(deviceList, "devices");

const deviceTable: TableDeclaration<typeof deviceColumns> = {
  name: deviceList,
  columns: deviceColumns,
  key: ["deviceId"],
  owner: "owner",
  quota: deviceQuota,
  describe: ({ deviceId }) => `device ${deviceId}`,
  // A list has no keys of vendors.
  sizeOfListed: ({ vendor_public_key: _, ...row }) => sizeInJson(row),
};

/** Names a simulated device's sealed secret key. */
export function nameSealedKey(device: Device): SealedKey {
  const { deviceId, publicKey } = device;
  const identity = `iot_devices/${deviceId}/secret-key`;
  return { record: deviceTable.describe(device), identity, algorithm: deviceAlgorithm, publicKey };
}

/** The devices of the service; what was changed behind our back throws RecordDamagedError. */
export interface IotStore extends ChallengeStore {
  find(deviceId: string): Promise<Device | undefined>;
  list(request: PageRequest, principal: Principal): Promise<Page<ListedDevice>>;
  count(principal?: Principal): Promise<number>;
  /** Keeps a device, within a transaction. @param secret of a simulated one */
  insert(transaction: WriteTransaction, device: Device, secret: Uint8Array | undefined): Promise<void>;
  /** Reads what a device last did, within a transaction. */
  readState(transaction: WriteTransaction, deviceId: string): Promise<DeviceState | undefined>;
  /** Remembers what a device did, within a transaction. */
  saveState(transaction: WriteTransaction, deviceId: string, state: DeviceState): Promise<void>;
  /** Accepts a reading; those of one moment share a transaction. @returns what is wrong; undefined if it is accepted */
  acceptReading(reading: DeviceReading): Promise<ReadingFault | undefined>;
}

/** Makes the store of the service on the store of all. */
export function createIotStore(store: Store): IotStore {
  const devices = openTable(store, deviceTable);
  const states = openTable(store, stateTable);
  const saveState = async (
    transaction: WriteTransaction,
    deviceId: string,
    state: DeviceState,
  ): Promise<void> => {
    const record = { ...state, deviceId };
    await states.update(transaction, { record, isIntact: true }, record);
  };
  const acceptReadings = store.batch(async (transaction, readings: readonly DeviceReading[]) => {
    const deviceIds = readings.map(({ deviceId }) => deviceId);
    const found = await states.findSome("deviceId", deviceIds, transaction.db);
    const known = new Map(
      found.map((state) => [
        state.record.deviceId,
        requireIntact<DeviceState>(state, stateTable.describe(state.record)),
      ]),
    );
    const changed = new Set<string>();
    const faults = readings.map((reading) => {
      const { deviceId } = reading;
      const state = known.get(deviceId);
      if (state === undefined) throw new RecordDamagedError(`device ${deviceId}`);
      const next = acceptReading(state, reading);
      if (typeof next === "string") return next;
      known.set(deviceId, next);
      changed.add(deviceId);
      return undefined;
    });
    for (const deviceId of changed) {
      const state = known.get(deviceId);
      if (state) await saveState(transaction, deviceId, state);
    }
    return faults;
  });
  return {
    ...createChallengeStore(store),
    find: (deviceId) => devices.findIntact({ deviceId }),
    async list(request, principal) {
      const page = await devices.list(request, {}, principal);
      const rows = page.rows.map(({ record, isIntact, row }) => {
        const state = states.readRow(row);
        return { record, isIntact: isIntact && state.isIntact, state: state.record };
      });
      return { ...page, rows };
    },
    count: (principal) => devices.count({}, principal),
    async insert(transaction, device, secret) {
      const state = states.toRow({ ...newDeviceState, deviceId: device.deviceId });
      await devices.insert(transaction, device, state);
      if (secret !== undefined) await transaction.putSecret(nameSealedKey(device).identity, secret);
    },
    readState: ({ db }, deviceId) => states.findIntact({ deviceId }, db),
    saveState,
    acceptReading: (reading) => acceptReadings(reading),
  };
}
