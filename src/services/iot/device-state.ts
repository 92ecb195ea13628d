/** What a device last did, and how that determines what it may do next. */
import type { RecordOf } from "../../records/columns.ts";
import type { stateTable } from "./tables.ts";

export type DeviceState = Omit<RecordOf<typeof stateTable.columns>, "deviceId">;

/** Initial state of a device. */
export const newDeviceState: DeviceState = {
  lastSeenAt: undefined,
  lastSequence: undefined,
  readingForm: undefined,
  firmwareVersion: undefined,
  firmwareHash: undefined,
  formerImages: [],
  reportedPath: undefined,
  reportedVersion: undefined,
  reportedHash: undefined,
  reportedAt: undefined,
  previousVersion: undefined,
};

/** A reading whose signature verified. */
export interface SignedReading {
  readonly sequence: number | undefined;
  readonly receivedAt: Date;
}

/** Reasons to reject a reading with a valid signature. */
export type ReadingFault = "SEQUENCE_OLD" | "SEQUENCE_REQUIRED" | "SEQUENCE_NOT_EXPECTED";

/**
 * Compares a reading's form with the first reading, and its sequence with the last one.
 *
 * @returns the new state, or the fault
 */
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

/** An image signed by the right vendor. */
export interface SignedImage {
  /** SHA-256; 64 lower-case hexadecimal digits. */
  readonly firmwareHash: string;
  readonly version: number | undefined;
}

/** Reasons not to install a signed image. */
export type ImageFault = "VERSION_REQUIRED" | "VERSION_ROLLBACK" | "IMAGE_ROLLBACK" | "IMAGE_LIMIT";

/**
 * Maximum number of former images in a device's state, which each reading reads and writes: an image a week
 * for 19 years. Beyond that, the device gets no more images, because a forgotten image could be reinstalled.
 */
const maxFormerImages = 1000;

/**
 * Compares an image's version and hash with the current and former images of the device.
 *
 * @returns the new state, or the fault
 */
export function installImage(
  state: DeviceState,
  { firmwareHash, version }: SignedImage,
): DeviceState | ImageFault {
  const { firmwareVersion: installed, firmwareHash: current, formerImages } = state;
  if (version === undefined && installed !== undefined) return "VERSION_REQUIRED";
  if (version !== undefined && version < (installed ?? 0)) return "VERSION_ROLLBACK";
  if (firmwareHash === current) return { ...state, firmwareVersion: version };
  // The vendor signs the hash without a version, so a former image is older even if the request claims a new
  // version.
  if (version !== undefined && formerImages.includes(firmwareHash)) return "IMAGE_ROLLBACK";
  // Without versions, an image may return; the list of former images contains it only once.
  const former = [...(current === undefined ? [] : [current]), ...formerImages].filter(
    (image) => image !== firmwareHash,
  );
  if (former.length > maxFormerImages) return "IMAGE_LIMIT";
  return { ...state, firmwareHash, firmwareVersion: version, formerImages: former };
}
