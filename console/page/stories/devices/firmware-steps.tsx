/** Firmware: from the vendor, an older version, from a different vendor, and modified. */
import { IotService } from "#gen/iot/iot_service_pb.ts";
import { sha256, verifyHere } from "../../algorithms.ts";
import type { Caller } from "../../caller.ts";
import { reportBrowser, reportEqual, reportServer, sayExpected } from "../../checks.ts";
import { attack, send } from "../../parts/diagrams/sequence.ts";
import { bytes, change, checks, evidence, signatureSizes } from "../../parts/show.tsx";
import { makeSigningKey, type SigningKey } from "../../signing-key.ts";
import { step } from "../../story-step.ts";
import { changeByte, formatBytes, formatNumber, toHex } from "../../values.ts";
import { judgeServer, mallory, type Registered, registering, server, vendor } from "./enrolment-steps.tsx";

/** Small enough to copy the call into a shell. */
export const imageBytes = 4096;
export const newVersion = 2;

interface SignedImage {
  readonly image: Uint8Array;
  /** SHA-256 of the image. */
  readonly digest: Uint8Array;
  readonly signature: Uint8Array;
}

async function signNewImage(vendor: SigningKey): Promise<SignedImage> {
  const image = crypto.getRandomValues(new Uint8Array(imageBytes));
  const digest = await sha256(image);
  return { image, digest, signature: vendor.sign(digest) };
}

/** Sends firmware to the server, and verifies it here with the vendor key that the server pinned. */
async function sendFirmware(
  { call }: Caller,
  { deviceId, vendor }: Registered,
  { image: firmware, digest, signature }: SignedImage,
  version: number,
  vendorPublicKey?: Uint8Array,
) {
  const request = { firmware, signature, deviceId, version, ...(vendorPublicKey && { vendorPublicKey }) };
  const { result, reason, firmwareHash } = await call(IotService.method.updateFirmware, request);
  return {
    result,
    reason,
    isAccepted: result === "FIRMWARE_ACCEPTED",
    /** Whether both sides computed the same hash. */
    isSameHash: firmwareHash === toHex(digest),
    isVendors: await verifyHere(vendor.algorithm, signature, digest, vendor.publicKey),
  };
}

type FirmwareOutcome = Awaited<ReturnType<typeof sendFirmware>>;

export const installing = step({
  title: "The vendor sends firmware",
  action: "Sign and send",
  why: `The image consists of ${formatNumber(imageBytes)} random bytes and claims version ${newVersion}. The
    vendor signs its hash with ML-DSA-87. The server hashes the received image, and accepts only the vendor
    from the registration.`,
  after: { registering },
  run: async (caller, { registering: registered }) => {
    const signed = await signNewImage(registered.vendor);
    return { ...signed, ...(await sendFirmware(caller, registered, signed, newVersion)) };
  },
  says: ({ result, image, signature }) =>
    `${result}: ${formatBytes(image.length)}, with a signature of ${formatBytes(signature.length)}.`,
  shows: ({ image, digest, signature, ...outcome }) => [
    evidence(
      "Image, hash and signature",
      bytes("Image", image),
      bytes("SHA-256 of the image, which is signed", digest),
      bytes("Vendor's signature", signature),
    ),
    checkFirmware(outcome),
    signatureSizes("ML-DSA-87", signature),
  ],
  draws: (value) => [send(vendor, server, `firmware, version ${newVersion}, signed`, judgeFirmware(value))],
});

export const rollingBack = step({
  title: "Older firmware with a valid signature",
  action: `Send version ${newVersion - 1}`,
  why: `The vendor once signed version ${newVersion - 1} too, and it had a vulnerability. The signature is
    valid, but the server refuses it, because the device has version ${newVersion}. The sender states the
    version; the vendor does not sign it.`,
  after: { registering, installing },
  run: async (caller, { registering: registered }) =>
    sendFirmware(caller, registered, await signNewImage(registered.vendor), newVersion - 1),
  says: (outcome) => sayRejected(outcome),
  shows: checkFirmware,
  draws: (value) => [attack(mallory, server, `version ${newVersion - 1}, genuine`, judgeFirmware(value))],
});

export const impersonating = step({
  title: "Firmware from a different vendor",
  action: "Sign with a different vendor's key",
  why: `The request has a valid signature and the matching key. The key in the request proves nothing, because
    the device's vendor is pinned.`,
  after: { registering },
  run: async (caller, { registering: registered }) => {
    const other = await makeSigningKey("ML-DSA-87");
    const signed = await signNewImage(other);
    const outcome = await sendFirmware(caller, registered, signed, newVersion + 1, other.publicKey);
    const isOthers = await verifyHere(other.algorithm, signed.signature, signed.digest, other.publicKey);
    return { ...outcome, isOthers };
  },
  says: (outcome) => sayRejected(outcome),
  shows: ({ isOthers, ...outcome }) => [
    checks(reportBrowser("the signature, with the key in the request", isOthers)),
    checkFirmware(outcome),
  ],
  draws: (value) => [attack(mallory, server, "firmware signed by a different vendor", judgeFirmware(value))],
});

export const altering = step({
  title: "Firmware with one bit changed",
  action: "Change and send",
  why: "This is the vendor's image with the vendor's signature, but one bit of the image is flipped.",
  after: { registering, installing },
  run: async (caller, { registering: registered, installing: { image, signature } }) => {
    const change = changeByte(image, imageBytes / 2);
    const signed = { image: change.after, digest: await sha256(change.after), signature };
    return { change, ...(await sendFirmware(caller, registered, signed, newVersion + 1)) };
  },
  says: (outcome) => sayRejected(outcome),
  shows: ({ change: changed, ...outcome }) => [change(changed), checkFirmware(outcome)],
  draws: (value) => [attack(mallory, server, "firmware, one bit changed", judgeFirmware(value))],
});

function sayRejected({ result, reason, isAccepted }: FirmwareOutcome): string {
  return sayExpected(!isAccepted, `${result}: ${reason}.`, result);
}

function checkFirmware({ isSameHash, isVendors, isAccepted, reason }: FirmwareOutcome) {
  return checks(
    reportEqual("the hash that the server computed", isSameHash),
    reportBrowser("the pinned vendor's signature over the hash", isVendors),
    reportServer("vendor, signature and version", isAccepted, isAccepted ? "accepted" : reason),
  );
}

function judgeFirmware(outcome: FirmwareOutcome | undefined) {
  return judgeServer(outcome?.isAccepted, "accepted", outcome);
}
