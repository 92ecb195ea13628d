/** The steps of firmware: from the vendor, older than the device's, from another vendor, and changed. */
import { IotService } from "#gen/iot/iot_service_pb.ts";
import { sha256, verifyHere } from "../../algorithms.ts";
import type { Caller } from "../../caller.ts";
import { makeSigningKey, type SigningKey } from "../../signing-key.ts";
import { changeByte, toHex } from "../../values.ts";

/** Small enough that the call can be copied into a shell. */
export const imageBytes = 4096;
export const newVersion = 2;

/** The device that gets the firmware, with the vendor that the server pinned for it. */
export interface FirmwareTarget {
  readonly deviceId: string;
  readonly vendor: SigningKey;
}

/** The outcome of sending firmware. */
export interface FirmwareOutcome {
  readonly result: string;
  readonly reason: string;
  readonly isAccepted: boolean;
  /** Whether both sides computed one hash of the image. */
  readonly isSameHash: boolean;
  /** Whether the browser finds that the pinned vendor signed the image. */
  readonly isVendors: boolean;
}

interface SignedImage {
  readonly image: Uint8Array;
  /** SHA-256 of the image. */
  readonly digest: Uint8Array;
  readonly signature: Uint8Array;
}

export async function installFirmware(caller: Caller, target: FirmwareTarget) {
  const signed = await signNewImage(target.vendor);
  return { ...signed, ...(await sendFirmware(caller, target, signed, newVersion)) };
}

/** Sends a version that is older than the one of the device. */
export async function rollBack(caller: Caller, target: FirmwareTarget): Promise<FirmwareOutcome> {
  return sendFirmware(caller, target, await signNewImage(target.vendor), newVersion - 1);
}

/** Sends firmware of another vendor, along with its key. */
export async function impersonateVendor(caller: Caller, target: FirmwareTarget) {
  const other = await makeSigningKey("ML-DSA-87");
  const signed = await signNewImage(other);
  const outcome = await sendFirmware(caller, target, signed, newVersion + 1, other.publicKey);
  const isOthers = await verifyHere(other.algorithm, signed.signature, signed.digest, other.publicKey);
  return { ...outcome, isOthers };
}

export async function sendChangedFirmware(
  caller: Caller,
  target: FirmwareTarget,
  { image, signature }: Pick<SignedImage, "image" | "signature">,
) {
  const change = changeByte(image, imageBytes / 2);
  const signed = { image: change.after, digest: await sha256(change.after), signature };
  return { change, ...(await sendFirmware(caller, target, signed, newVersion + 1)) };
}

async function signNewImage(vendor: SigningKey): Promise<SignedImage> {
  const image = crypto.getRandomValues(new Uint8Array(imageBytes));
  const digest = await sha256(image);
  return { image, digest, signature: vendor.sign(digest) };
}

/** Sends firmware to the server, and verifies it here with the key of the pinned vendor. */
async function sendFirmware(
  { call }: Caller,
  { deviceId, vendor }: FirmwareTarget,
  { image: firmware, digest, signature }: SignedImage,
  version: number,
  vendorPublicKey?: Uint8Array,
): Promise<FirmwareOutcome> {
  const request = { firmware, signature, deviceId, version, ...(vendorPublicKey && { vendorPublicKey }) };
  const { result, reason, firmwareHash } = await call(IotService.method.updateFirmware, request);
  return {
    result,
    reason,
    isAccepted: result === "FIRMWARE_ACCEPTED",
    isSameHash: firmwareHash === toHex(digest),
    isVendors: await verifyHere(vendor.algorithm, signature, digest, vendor.publicKey),
  };
}
