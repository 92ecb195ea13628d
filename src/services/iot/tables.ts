import { column, type ListedRow, type RowOf, type TaggedRow } from "../../records/columns.ts";
import { addColumns, createRecordTable, createTable } from "../../records/create-table.ts";
import { sizeInJson } from "../../records/pages.ts";
import { recordQuota } from "../../records/quota.ts";
import type { RecordTables, TableDeclaration } from "../../records/table-declaration.ts";

const deviceColumns = {
  deviceId: column.text("device_id"),
  deviceName: column.text("device_name"),
  deviceType: column.text("device_type"),
  /** Raw ML-DSA-44. */
  publicKey: column.bytes("public_key"),
  /** Whether the service can sign as the device. */
  isSimulated: column.flag("is_simulated"),
  /** Raw ML-DSA-87; empty if no vendor is pinned. */
  vendorPublicKey: column.bytes("vendor_public_key"),
  /** User who registered the device. */
  owner: column.text("owner"),
  registeredAt: column.time("registered_at_ms"),
  /** Whether the device signs with a context for each purpose. */
  hasSigningContexts: column.namedFlag("signing_contexts", "signing contexts"),
};

/** Quota for an owner's devices. */
export const deviceQuota = recordQuota("iot_devices", "devices");

export const deviceTable: TableDeclaration<typeof deviceColumns> = {
  name: "iot_devices",
  columns: deviceColumns,
  key: ["deviceId"],
  owner: "owner",
  quota: deviceQuota,
  hasSecret: ({ isSimulated }) => isSimulated,
  describe: ({ deviceId }) => `device ${deviceId}`,
  // Lists omit vendor keys.
  sizeOfListed: ({ vendor_public_key: _, ...row }) => sizeInJson(row),
};

/** Columns of a device's state, in the row of the device. */
const stateColumns = {
  deviceId: column.text("device_id"),
  lastSeenAt: column.untagged(column.optionalTime("last_seen_at_ms")),
  lastSequence: column.optionalInteger("last_sequence"),
  firmwareVersion: column.optionalUint32("firmware_version"),
  /** 64 lower-case hexadecimal digits. */
  firmwareHash: column.optionalText("firmware_hash"),
  /** Undefined before the first verified reading. */
  readingForm: column.optionalChoice("reading_form", ["NUMBERED", "PLAIN"]),
  /** Hashes of the device's former images, latest first. */
  formerImages: column.spacedList("former_images"),
  /** What the device last said that it runs; undefined before its first report. */
  reportedPath: column.added(column.optionalText("reported_path")),
  reportedVersion: column.added(column.optionalText("reported_version")),
  /** 64 lower-case hexadecimal digits. */
  reportedHash: column.added(column.optionalText("reported_hash")),
  reportedAt: column.added(column.optionalTime("reported_at_ms")),
  /** Version that it reported before this image. */
  previousVersion: column.added(column.optionalText("previous_version")),
};

const { reportedPath, reportedVersion, reportedHash, reportedAt, previousVersion, ...firstStateColumns } =
  stateColumns;

/** A device's state. It has its own tag, because it changes while the device's record does not. */
export const stateTable: TableDeclaration<typeof stateColumns> = {
  name: "iot_devices",
  columns: stateColumns,
  key: ["deviceId"],
  tagKind: "iot_devices state",
  tagColumn: "state_tag",
  // Both are empty until the first reading or the second image, and the tag omits them until then.
  omittedAtEnd: ["readingForm", "formerImages"],
  describe: ({ deviceId }) => `state of device ${deviceId}`,
};

const challengeColumns = {
  /** SHA-256. */
  challengeHash: column.text("challenge_hash"),
  deviceId: column.text("device_id"),
  /** Client network that requested the challenge. */
  issuedTo: column.text("issued_to"),
  expiresAt: column.time("expires_at_ms"),
  usedAt: column.optionalTime("used_at_ms"),
};

/** Challenges of the last hour. */
export const challengeTable: TableDeclaration<typeof challengeColumns> = {
  name: "iot_challenges",
  columns: challengeColumns,
  key: ["challengeHash"],
  orderedBy: "challenge_hash",
  describe: ({ deviceId }) => `a challenge of device ${deviceId}`,
};

declare module "../../database/schema.ts" {
  interface Schema {
    /** A device and its state; `state_tag` binds the state to the device. */
    iot_devices: ListedRow<typeof deviceColumns> & RowOf<typeof stateColumns> & { state_tag: string };
    iot_challenges: TaggedRow<typeof challengeColumns>;
  }
}

/** Column order in the table. */
const { owner, registeredAt, hasSigningContexts, ...recordColumns } = deviceColumns;

/** Tables for devices and challenges: see store.ts, device-state.ts and challenge-store.ts. */
export const iotTables: RecordTables = {
  records: [deviceTable, stateTable, challengeTable],
  tables: { iot_devices: ["position"], iot_challenges: ["challenge_hash"] },
  steps: {
    "0001-iot": (types) => [
      createRecordTable(types, {
        ...stateTable,
        key: ["deviceId"],
        columns: {
          ...recordColumns,
          hasSigningContexts,
          owner,
          registeredAt,
          recordTag: column.text("record_tag"),
          ...firstStateColumns,
        },
      }),
      "create index iot_devices_by_owner_position on iot_devices (owner, position)",
      createTable(types, challengeTable),
      "create index iot_challenges_by_expires_at_ms on iot_challenges (expires_at_ms)",
      `create index iot_challenges_open on iot_challenges (issued_to, expires_at_ms)
        where used_at_ms is null`,
    ],
    // Untagged challenges live for a minute: a device that has one requests a new one.
    "0005-iot-challenges": () => [
      "delete from iot_challenges",
      "alter table iot_challenges add column record_tag text not null default ''",
    ],
    "0009-iot": (types) =>
      addColumns(types, "iot_devices", [
        ...[reportedPath, reportedVersion, reportedHash, reportedAt, previousVersion],
      ]),
  },
};
