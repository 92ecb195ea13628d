/** What a device last did, how that decides what it may do next, and how it stands in the store. */
import { readOptionalTime, readUint32 } from "../../database/row-values.ts";
import type { IotDevicesTable } from "../../database/schema.ts";

/** Whether the readings of a device have a sequence. */
export type ReadingForm = "NUMBERED" | "PLAIN";

/** What a device last did. */
export interface DeviceState {
  readonly lastSeenAt: Date | undefined;
  readonly lastSequence: number | undefined;
  /** Undefined before the first verified reading. */
  readonly readingForm: ReadingForm | undefined;
  readonly firmwareVersion: number | undefined;
  /** 64 lower-case hexadecimal digits. */
  readonly firmwareHash: string | undefined;
  /** Hashes of images that the device had before, the latest first; only those that had a version. */
  readonly formerImages: readonly string[];
}

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

/** All that the tag of a device's state binds; in this order for the life of a store. */
export function listStateFields(deviceId: string, state: DeviceState): (string | number)[] {
  const { lastSequence, readingForm, firmwareVersion, firmwareHash, formerImages } = state;
  const fields = [
    "iot_devices state",
    deviceId,
    lastSequence ?? "",
    firmwareVersion ?? "",
    firmwareHash ?? "",
  ];
  // Rows of a store from before these two fields, which no step of the schema can tag anew, have neither.
  if (readingForm === undefined && formerImages.length === 0) return fields;
  return [...fields, readingForm ?? "", formerImages.join(" ")];
}

/** The columns of a device's state, without its tag. */
export function toStateRow(state: DeviceState) {
  return {
    last_seen_at_ms: state.lastSeenAt?.getTime() ?? null,
    last_sequence: state.lastSequence ?? null,
    reading_form: state.readingForm ?? null,
    firmware_version: state.firmwareVersion ?? null,
    firmware_hash: state.firmwareHash ?? null,
    former_images: state.formerImages.join(" "),
  };
}

/** Reads the columns of a device's state as they are; the caller checks their tag. */
export function readStateRow(row: IotDevicesTable): DeviceState {
  return {
    lastSeenAt: readOptionalTime(row.last_seen_at_ms),
    lastSequence: row.last_sequence ?? undefined,
    readingForm: toReadingForm(row.reading_form),
    firmwareVersion: row.firmware_version === null ? undefined : readUint32(row.firmware_version),
    firmwareHash: row.firmware_hash ?? undefined,
    formerImages: row.former_images === "" ? [] : row.former_images.split(" "),
  };
}

function toReadingForm(text: string | null): ReadingForm | undefined {
  return text === "NUMBERED" || text === "PLAIN" ? text : undefined;
}

/** The state as decisions need it: a device of an older store that has a last sequence numbers its readings. */
export function withKnownForm(state: DeviceState): DeviceState {
  if (state.readingForm !== undefined || state.lastSequence === undefined) return state;
  return { ...state, readingForm: "NUMBERED" };
}
