/** What the device service keeps: devices with what they last did, and challenges. */
import { hash } from "node:crypto";
import { readTime } from "../../database/row-values.ts";
import type { IotDevicesTable } from "../../database/schema.ts";
import { RecordDamagedError } from "../../database/store-error.ts";
import { changeCounts, readCount } from "../../records/list-counts.ts";
import { countedLists, listSeenBy, type Principal, systemPrincipal } from "../../records/ownership.ts";
import { cutPage, type Page, type PageRequest, sizeInJson } from "../../records/pages.ts";
import { nextPosition } from "../../records/positions.ts";
import { recordQuota } from "../../records/quota.ts";
import type { SealedKey } from "../../secrets/sealed-keys.ts";
import type { Store, WriteTransaction } from "../../store/store.ts";
import {
  acceptReading,
  type DeviceState,
  listStateFields,
  newDeviceState,
  type ReadingFault,
  readStateRow,
  type SignedReading,
  toStateRow,
  withKnownForm,
} from "./device-state.ts";

/** The algorithms of devices and of firmware vendors. */
export const deviceAlgorithm = "ML-DSA-44";
export const vendorAlgorithm = "ML-DSA-87";

/** A device, as it was registered. */
export interface Device {
  readonly deviceId: string;
  readonly deviceName: string;
  readonly deviceType: string;
  /** Raw ML-DSA-44. */
  readonly publicKey: Uint8Array;
  /** Whether the service can sign as the device. */
  readonly isSimulated: boolean;
  /** Raw ML-DSA-87; empty if no vendor is pinned. */
  readonly vendorPublicKey: Uint8Array;
  /** Whether it signs with a context for each use. */
  readonly hasSigningContexts: boolean;
  /** Who registered it. */
  readonly owner: string;
  readonly registeredAt: Date;
}

/** A device as lists have it. */
export interface ListedDevice extends Device, DeviceState {
  /** False if somebody changed it behind our back. */
  readonly isIntact: boolean;
}

/** A challenge as it is kept. */
export interface StoredChallenge {
  readonly deviceId: string;
  readonly expiresAt: Date;
  readonly isUsed: boolean;
}

/** A challenge to keep. */
export interface NewChallenge {
  readonly challenge: Uint8Array;
  readonly deviceId: string;
  /** The client network that asked for it. */
  readonly client: string;
  readonly expiresAt: Date;
}

/** Which open challenges to count: those that can still be answered. */
export interface OpenChallengeQuery {
  readonly client: string;
  /** Only those of this device; all if it is undefined. */
  readonly deviceId?: string;
  readonly now: Date;
  /** Where to stop counting. */
  readonly limit: number;
}

/** A reading whose signature verified, and whose it is. */
export interface DeviceReading extends SignedReading {
  readonly deviceId: string;
}

/** Names the list of all devices, for page tokens and counts. */
export const deviceList = "iot_devices";

/** Counts the devices of an owner. */
export const deviceQuota = recordQuota(deviceList, "devices");

/** Names a simulated device's sealed secret key. */
export function nameSealedKey({ deviceId, publicKey }: Device): SealedKey {
  const identity = `iot_devices/${deviceId}/secret-key`;
  return { record: `device ${deviceId}`, identity, algorithm: deviceAlgorithm, publicKey };
}

/** The devices of the service; what was changed behind our back throws RecordDamaged. */
export interface IotStore {
  find(deviceId: string): Promise<Device | undefined>;
  list(request: PageRequest, principal: Principal): Promise<Page<ListedDevice>>;
  count(principal?: Principal): Promise<number>;
  /** Keeps a device, within a transaction. @param secret of a simulated one */
  insert(transaction: WriteTransaction, device: Device, secret: Uint8Array | undefined): Promise<void>;
  /** Reads what a device last did, within a transaction. */
  readState(transaction: WriteTransaction, deviceId: string): Promise<DeviceState | undefined>;
  /** Remembers what a device did, within a transaction. */
  saveState(transaction: WriteTransaction, deviceId: string, state: DeviceState): Promise<void>;

  /** Counts the open challenges of a client network, up to a limit. @param db of a transaction; else the reader */
  countOpenChallenges(query: OpenChallengeQuery, db?: WriteTransaction["db"]): Promise<number>;
  /** Keeps a challenge, within a transaction, and removes some of those that are long dead. */
  insertChallenge(transaction: WriteTransaction, challenge: NewChallenge): Promise<void>;
  /** Removes challenges that are long dead. */
  removeDeadChallenges(now: Date): Promise<void>;
  /** Reads a challenge within a transaction. */
  findChallenge(transaction: WriteTransaction, challenge: Uint8Array): Promise<StoredChallenge | undefined>;
  /** Uses a challenge up, within a transaction. */
  useChallenge(transaction: WriteTransaction, challenge: Uint8Array, now: Date): Promise<void>;

  /** Accepts a reading; those of one moment share a transaction. @returns what is wrong; undefined if it is accepted */
  acceptReading(reading: DeviceReading): Promise<ReadingFault | undefined>;
}

/** Milliseconds after its death that a challenge is remembered, so that its late user learns why it is refused. */
const rememberedMs = 3600 * 1000;

/** Dead challenges to remove in one transaction. */
const removedAtOnce = 200;

function selectDead(db: WriteTransaction["db"], now: Date) {
  return db
    .selectFrom("iot_challenges")
    .select("challenge_hash")
    .where("expires_at_ms", "<", now.getTime() - rememberedMs);
}

async function removeDead(db: WriteTransaction["db"], now: Date): Promise<void> {
  await db
    .deleteFrom("iot_challenges")
    .where("challenge_hash", "in", selectDead(db, now).limit(removedAtOnce))
    .execute();
}

/** Makes the store of the service on the store of all. */
export function createIotStore(store: Store): IotStore {
  const read = async (db: WriteTransaction["db"], deviceIds: readonly string[]): Promise<IotDevicesTable[]> =>
    db
      .selectFrom("iot_devices")
      .selectAll()
      .where("device_id", "in", [...deviceIds])
      .execute();
  const toCheckedState = (row: IotDevicesTable): DeviceState => {
    const state = readStateRow(row);
    store.requireTagged(
      `state of device ${row.device_id}`,
      listStateFields(row.device_id, state),
      row.state_tag,
    );
    return withKnownForm(state);
  };
  const saveState = async ({ db }: WriteTransaction, deviceId: string, state: DeviceState): Promise<void> => {
    await db
      .updateTable("iot_devices")
      .set({ ...toStateRow(state), state_tag: store.tagRecord(listStateFields(deviceId, state)) })
      .where("device_id", "=", deviceId)
      .execute();
  };
  const acceptReadings = store.batch(async (transaction, readings: readonly DeviceReading[]) => {
    const rows = await read(transaction.db, [...new Set(readings.map(({ deviceId }) => deviceId))]);
    const states = new Map(rows.map((row) => [row.device_id, toCheckedState(row)]));
    const faults = readings.map((reading) => {
      const state = states.get(reading.deviceId);
      if (state === undefined) throw new RecordDamagedError(`device ${reading.deviceId}`);
      const next = acceptReading(state, reading);
      if (typeof next === "string") return next;
      states.set(reading.deviceId, next);
      return undefined;
    });
    const changed = new Set(
      readings.filter((_, i) => faults[i] === undefined).map(({ deviceId }) => deviceId),
    );
    for (const deviceId of changed) {
      const state = states.get(deviceId);
      if (state) await saveState(transaction, deviceId, state);
    }
    return faults;
  });
  return {
    async find(deviceId) {
      const [row] = await read(store.reader, [deviceId]);
      const device = row && toDevice(row);
      if (device) store.requireTagged(`device ${deviceId}`, listTaggedFields(device), row.record_tag);
      return device;
    },
    async list(request, principal) {
      let query = store.reader.selectFrom("iot_devices").selectAll().where("position", ">", request.after);
      if (principal.owner !== undefined) query = query.where("owner", "=", principal.owner);
      const rows = await query
        .orderBy("position")
        .limit(request.limit + 1)
        .execute();
      const page = cutPage(
        rows,
        request,
        listSeenBy(principal, deviceList),
        ({ position }) => position,
        sizeOfListed,
      );
      const pack = (row: IotDevicesTable): ListedDevice => {
        const [device, state] = [toDevice(row), readStateRow(row)];
        const isIntact =
          store.isTagged(listTaggedFields(device), row.record_tag) &&
          store.isTagged(listStateFields(device.deviceId, state), row.state_tag);
        return { ...device, ...withKnownForm(state), isIntact };
      };
      return { ...page, rows: page.rows.map(pack) };
    },
    count: (principal = systemPrincipal) => readCount(store.reader, listSeenBy(principal, deviceList)),
    async insert({ db, putSecret, requireRoom }, device, secret) {
      await requireRoom(deviceQuota, device.owner);
      await db
        .insertInto("iot_devices")
        .values({
          position: await nextPosition(db, "iot_devices"),
          device_id: device.deviceId,
          device_name: device.deviceName,
          device_type: device.deviceType,
          public_key: device.publicKey,
          is_simulated: device.isSimulated ? 1 : 0,
          vendor_public_key: device.vendorPublicKey,
          signing_contexts: device.hasSigningContexts ? 1 : 0,
          owner: device.owner,
          registered_at_ms: device.registeredAt.getTime(),
          record_tag: store.tagRecord(listTaggedFields(device)),
          ...toStateRow(newDeviceState),
          state_tag: store.tagRecord(listStateFields(device.deviceId, newDeviceState)),
        })
        .execute();
      await changeCounts(db, countedLists([deviceList], device), 1);
      if (secret !== undefined) await putSecret(nameSealedKey(device).identity, secret);
    },
    async readState({ db }, deviceId) {
      const [row] = await read(db, [deviceId]);
      return row && toCheckedState(row);
    },
    saveState,

    async countOpenChallenges({ client, deviceId, now, limit }, db = store.reader) {
      let query = db
        .selectFrom("iot_challenges")
        .select("device_id")
        .where("issued_to", "=", client)
        .where("used_at_ms", "is", null)
        .where("expires_at_ms", ">", now.getTime());
      if (deviceId !== undefined) query = query.where("device_id", "=", deviceId);
      return (await query.limit(limit).execute()).length;
    },
    async removeDeadChallenges(now) {
      const findOne = () => selectDead(store.reader, now).limit(1).executeTakeFirst();
      while ((await findOne()) !== undefined) await store.write(({ db }) => removeDead(db, now));
    },
    async insertChallenge({ db }, { challenge, deviceId, client, expiresAt }) {
      await removeDead(db, expiresAt);
      await db
        .insertInto("iot_challenges")
        .values({
          challenge_hash: hashChallenge(challenge),
          device_id: deviceId,
          issued_to: client,
          expires_at_ms: expiresAt.getTime(),
          used_at_ms: null,
        })
        .execute();
    },
    async findChallenge({ db }, challenge) {
      const row = await db
        .selectFrom("iot_challenges")
        .selectAll()
        .where("challenge_hash", "=", hashChallenge(challenge))
        .executeTakeFirst();
      return (
        row && {
          deviceId: row.device_id,
          expiresAt: readTime(row.expires_at_ms),
          isUsed: row.used_at_ms !== null,
        }
      );
    },
    async useChallenge({ db }, challenge, now) {
      await db
        .updateTable("iot_challenges")
        .set({ used_at_ms: now.getTime() })
        .where("challenge_hash", "=", hashChallenge(challenge))
        .execute();
    },

    acceptReading: (reading) => acceptReadings(reading),
  };
}

function hashChallenge(challenge: Uint8Array): string {
  return hash("sha256", challenge, "hex");
}

/** All that a device's tag binds; in this order for the life of a store. */
function listTaggedFields(device: Device): (string | number | Uint8Array)[] {
  const fields = [
    "iot_devices",
    device.deviceId,
    device.deviceName,
    device.deviceType,
    device.publicKey,
    device.isSimulated ? 1 : 0,
    device.vendorPublicKey,
    device.owner,
    device.registeredAt.getTime(),
  ];
  // Devices of a store from before signing contexts were tagged without this field.
  return device.hasSigningContexts ? [...fields, "signing contexts"] : fields;
}

function toDevice(row: IotDevicesTable): Device {
  return {
    deviceId: row.device_id,
    deviceName: row.device_name,
    deviceType: row.device_type,
    publicKey: row.public_key,
    isSimulated: row.is_simulated === 1,
    vendorPublicKey: row.vendor_public_key,
    hasSigningContexts: row.signing_contexts === 1,
    owner: row.owner,
    registeredAt: readTime(row.registered_at_ms),
  };
}
/** How large a device is in a list, in JSON, about: without the key of its vendor. */
function sizeOfListed({ vendor_public_key: _, ...row }: IotDevicesTable): number {
  return sizeInJson(row);
}
