/** What a device last did, how that decides what it may do next, and how it stands in the store. */
import { column, type RecordOf } from "../../records/columns.ts";
import type { TableDeclaration } from "../../records/table-declaration.ts";

/** The columns of a device's state, which stand in the row of the device. */
export const stateColumns = {
  deviceId: column.text("device_id"),
  lastSeenAt: column.untagged(column.optionalTime("last_seen_at_ms")),
  lastSequence: column.optionalInteger("last_sequence"),
  firmwareVersion: column.optionalUint32("firmware_version"),
  /** 64 lower-case hexadecimal digits. */
  firmwareHash: column.optionalText("firmware_hash"),
  /** Undefined before the first verified reading. */
  readingForm: column.optionalChoice("reading_form", ["NUMBERED", "PLAIN"]),
  /** Hashes of images that the device had before, the latest first; only those that had a version. */
  formerImages: column.spacedList("former_images"),
};

/** What a device last did. */
export type DeviceState = Omit<RecordOf<typeof stateColumns>, "deviceId">;

/** The state of a device, with a tag of its own: it changes while the device stays as it was registered. */
export const stateTable: TableDeclaration<typeof stateColumns> = {
  name: "iot_devices",
  columns: stateColumns,
  key: ["deviceId"],
  tagKind: "iot_devices state",
  tagColumn: "state_tag",
  // Both are empty until the first reading or the second image; the tag does not have them then.
  omittedAtEnd: ["readingForm", "formerImages"],
  describe: ({ deviceId }) => `state of device ${deviceId}`,
};

/** The state of a device that did nothing yet. */
export const newDeviceState: DeviceState = {
  lastSeenAt: undefined,
  lastSequence: undefined,
  readingForm: undefined,
  firmwareVersion: undefined,
  firmwareHash: undefined,
  formerImages: [],
};

/** A reading whose signature verified. */
export interface SignedReading {
  readonly sequence: number | undefined;
  readonly receivedAt: Date;
}

/** Why a reading with a valid signature is not accepted. */
export type ReadingFault = "SEQUENCE_OLD" | "SEQUENCE_REQUIRED" | "SEQUENCE_NOT_EXPECTED";

/** Judges a reading: its form against that of the first one, its sequence against the last one. @returns the new state, or the fault */
export function acceptReading(
  state: DeviceState,
  { sequence, receivedAt }: SignedReading,
): DeviceState | ReadingFault {
  const form = sequence === undefined ? "PLAIN" : "NUMBERED";
  const known = state.readingForm ?? form;
  if (known !== form) return known === "NUMBERED" ? "SEQUENCE_REQUIRED" : "SEQUENCE_NOT_EXPECTED";
  if (sequence !== undefined && sequence <= (state.lastSequence ?? -1)) return "SEQUENCE_OLD";
  return {
    ...state,
    lastSeenAt: receivedAt,
    readingForm: form,
    lastSequence: sequence ?? state.lastSequence,
  };
}

/** An image that the right vendor signed. */
export interface SignedImage {
  /** SHA-256; 64 lower-case hexadecimal digits. */
  readonly firmwareHash: string;
  readonly version: number | undefined;
}

/** Why a signed image is not installed. */
export type ImageFault = "VERSION_REQUIRED" | "VERSION_ROLLBACK" | "IMAGE_ROLLBACK";

/** Former images that a device's state remembers. */
const maxFormerImages = 32;

/** Judges an image: its version and its hash against what the device has and had. @returns the new state, or the fault */
export function installImage(
  state: DeviceState,
  { firmwareHash, version }: SignedImage,
): DeviceState | ImageFault {
  const { firmwareVersion: installed, firmwareHash: current, formerImages } = state;
  if (installed === undefined) return { ...state, firmwareHash, firmwareVersion: version };
  if (version === undefined) return "VERSION_REQUIRED";
  if (version < installed) return "VERSION_ROLLBACK";
  if (firmwareHash === current) return { ...state, firmwareVersion: version };
  // The vendor signs the hash without a version: an image that was replaced is older, whatever version is claimed.
  if (formerImages.includes(firmwareHash)) return "IMAGE_ROLLBACK";
  const former = current === undefined ? formerImages : [current, ...formerImages];
  return { ...state, firmwareHash, firmwareVersion: version, formerImages: former.slice(0, maxFormerImages) };
}
