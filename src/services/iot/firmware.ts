import { createHash } from "node:crypto";
import type {
  ReportFirmwareRequest,
  UpdateFirmwareRequest,
  UpdateFirmwareStreamRequest,
} from "#gen/iot/iot_service_pb.ts";
import { equalBytes } from "../../crypto/bytes.ts";
import { refuse, refuseField } from "../../errors.ts";
import type { CallerInput } from "../../identity/principal.ts";
import type { Principal } from "../../records/ownership.ts";
import { checkSignatureLength, readGivenKey } from "../fields.ts";
import { type ImageFault, installImage, type SignedImage } from "./device-state.ts";
import { deviceNotFound, type IotDeps, requireDevice } from "./register.ts";
import { type Device, vendorAlgorithm } from "./store.ts";

/** The firmware vendor, and the device that the firmware is for. */
export type FirmwareHeader = Omit<UpdateFirmwareRequest, "firmware" | "$typeName">;

/** The caller that sends the firmware. */
type FirmwareSender = Pick<CallerInput, "principal" | "signal">;

export interface FirmwareVerdict {
  readonly result: "FIRMWARE_ACCEPTED" | "FIRMWARE_REJECTED";
  /** SHA-256; 64 lower-case hexadecimal digits. */
  readonly firmwareHash: string;
  readonly reason: "" | "SIGNATURE_INVALID" | "VENDOR_MISMATCH" | ImageFault;
}

/**
 * Installs firmware on a device, or only checks it if the request names no device.
 *
 * Checks the vendor's signature over the 32 bytes of the firmware's hash, the pinned vendor, and that neither
 * version nor image is older than the installed one. Then stores hash and version as installed.
 *
 * @throws DEVICE_NOT_FOUND, VENDOR_MISSING, KEY_INVALID, LENGTH_INVALID, RECORD_DAMAGED
 */
export async function updateFirmware(
  deps: IotDeps,
  header: FirmwareHeader,
  firmware: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  { principal, signal }: FirmwareSender,
): Promise<FirmwareVerdict> {
  const { provider, devices } = deps;
  // Find the device before reading the image, which may take long to arrive.
  const device =
    header.deviceId === "" ? undefined : await requireDevice(devices, header.deviceId, principal);
  const given = readGivenKey(provider, vendorAlgorithm, header, "vendorPublicKey");
  const vendorKey = given?.exportRaw() ?? findPinnedKey(device);
  checkSignatureLength(vendorAlgorithm, header.signature);
  const digest = await hashFirmware(firmware);
  const firmwareHash = digest.toString("hex");
  const reject = (reason: FirmwareVerdict["reason"]): FirmwareVerdict => ({
    result: "FIRMWARE_REJECTED",
    firmwareHash,
    reason,
  });
  const isPinned = device !== undefined && device.vendorPublicKey.length > 0;
  if (isPinned && !equalBytes(vendorKey, device.vendorPublicKey)) return reject("VENDOR_MISMATCH");
  const publicKey = provider.importPublicKey(vendorAlgorithm, { raw: vendorKey });
  if (!(await provider.verify(publicKey, digest, header.signature))) return reject("SIGNATURE_INVALID");
  // Do not install for a caller that has disconnected.
  signal.throwIfAborted();
  const fault = device && (await install(deps, device, { firmwareHash, version: header.version }));
  if (fault !== undefined) return reject(fault);
  return { result: "FIRMWARE_ACCEPTED", firmwareHash, reason: "" };
}

function findPinnedKey(device: Device | undefined): Uint8Array {
  if (device !== undefined && device.vendorPublicKey.length > 0) return device.vendorPublicKey;
  throw refuse("VENDOR_MISSING", "the device has no pinned vendor; send vendorPublicKey", {
    deviceId: device?.deviceId ?? "",
  });
}

async function hashFirmware(firmware: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<Buffer> {
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const chunk of firmware) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  if (bytes === 0) throw refuseField("firmware", "is missing; send at least 1 byte of the image");
  return hash.digest();
}

/**
 * @returns the image fault; undefined if the image is installed
 */
function install(
  { store, devices }: IotDeps,
  { deviceId }: Device,
  image: SignedImage,
): Promise<ImageFault | undefined> {
  return store.write(async (transaction) => {
    const state = await devices.readState(transaction, deviceId);
    // Someone removed the device after it was found.
    if (state === undefined) throw deviceNotFound(deviceId);
    const next = installImage(state, image);
    if (typeof next === "string") return next;
    await devices.saveState(transaction, deviceId, next);
    return undefined;
  });
}

type FirmwarePart = UpdateFirmwareStreamRequest["part"];

/**
 * Checks firmware as it arrives, in constant memory.
 *
 * @throws the errors of `updateFirmware`, and FIELD_INVALID
 */
export async function updateFirmwareStream(
  deps: IotDeps,
  stream: AsyncIterable<FirmwarePart>,
  sender: FirmwareSender,
): Promise<FirmwareVerdict> {
  const iterator = stream[Symbol.asyncIterator]();
  const first = await iterator.next();
  if (first.done === true || first.value.case !== "header")
    throw refuseField("header", "is missing; the first message of the stream is the header");
  return updateFirmware(deps, first.value.value, chunksOf(iterator), sender);
}

async function* chunksOf(iterator: AsyncIterator<FirmwarePart>): AsyncGenerator<Uint8Array> {
  for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) {
    if (next.value.case !== "chunk")
      throw refuseField("header", "occurs twice; all messages after the first must be chunks");
    yield next.value.value;
  }
}

/**
 * Records what the calling device says that it runs.
 *
 * @param principal a device: the access rule of the call admits no other
 * @returns the time of the report
 * @throws DEVICE_NOT_FOUND, RECORD_DAMAGED
 */
export function reportFirmware(
  { store, devices, now }: IotDeps,
  { targetPath: reportedPath, version: reportedVersion, firmwareHash: reportedHash }: ReportFirmwareRequest,
  { deviceId = "" }: Principal,
): Promise<Date> {
  return store.write(async (transaction) => {
    const state = await devices.readState(transaction, deviceId);
    if (state === undefined) throw deviceNotFound(deviceId);
    const reportedAt = now();
    const isSame = reportedHash === state.reportedHash && reportedVersion === (state.reportedVersion ?? "");
    await devices.saveState(transaction, deviceId, {
      ...state,
      ...{ reportedPath, reportedVersion, reportedHash, reportedAt, lastSeenAt: reportedAt },
      previousVersion: isSame ? state.previousVersion : state.reportedVersion,
    });
    return reportedAt;
  });
}
