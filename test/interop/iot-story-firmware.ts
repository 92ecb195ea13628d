/** The chapter of a story in which devices get firmware. */
import { hash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { makeSigner, type Signer, sha256 } from "../services/node-crypto.ts";
import { bytesOf } from "../support/bytes.ts";
import { refusal } from "../support/refusal.ts";
import type { Stage } from "./iot-story.ts";

const image = bytesOf("firmware for all, version 2");
const otherImage = bytesOf("firmware for all, version 3");

/** What a vendor signs: the 32 bytes of the hash, not the image. */
function signImage({ sign }: Signer, firmware: Uint8Array): Uint8Array<ArrayBuffer> {
  return sign(hash("sha256", firmware, "buffer"));
}

const accepted = (firmware: Uint8Array) => ({
  status: "success",
  result: "FIRMWARE_ACCEPTED",
  firmwareHash: sha256(firmware),
  reason: "",
});
const rejected = (firmware: Uint8Array, reason: string) => ({
  ...accepted(firmware),
  result: "FIRMWARE_REJECTED",
  reason,
});

export function tellOfFirmware({ iot, driver, keep, idOf, vendor }: Stage): void {
  const signed = (firmware: Uint8Array) => ({ firmware, signature: signImage(vendor, firmware) });

  describe("UpdateFirmware", () => {
    it("accepts what a vendor signed, for no device in particular", async () => {
      const { publicKeyPem: vendorPublicKeyPem } = vendor;
      const answer = await iot.updateFirmware({ ...signed(image), vendorPublicKeyPem });
      expect(answer).toMatchObject(accepted(image));
    });

    it("accepts what a device's pinned vendor signed, whose key need not be told", async () => {
      const answer = await iot.updateFirmware({ ...signed(image), deviceId: idOf("meter"), version: 2 });
      expect(answer).toMatchObject(accepted(image));
      keep("meter", { firmwareVersion: 2, firmwareHash: answer.firmwareHash });
    });

    it("rejects a version below the installed one", async () => {
      const request = { ...signed(otherImage), deviceId: idOf("meter"), version: 1 };
      expect(await iot.updateFirmware(request)).toMatchObject(rejected(otherImage, "VERSION_ROLLBACK"));
    });

    it("rejects an image without a version, once one is installed", async () => {
      const request = { ...signed(otherImage), deviceId: idOf("meter") };
      expect(await iot.updateFirmware(request)).toMatchObject(rejected(otherImage, "VERSION_REQUIRED"));
    });

    it("rejects what another vendor than the pinned one signed", async () => {
      const other = makeSigner("ml-dsa-87");
      const { publicKey: vendorPublicKey } = other;
      const request = { firmware: otherImage, signature: signImage(other, otherImage), vendorPublicKey };
      const ofMeter = { ...request, deviceId: idOf("meter"), version: 3 };
      expect(await iot.updateFirmware(ofMeter)).toMatchObject(rejected(otherImage, "VENDOR_MISMATCH"));
    });

    it("rejects an image that was changed, and tells the hash of what came", async () => {
      const changed = { ...signed(image), firmware: otherImage, deviceId: idOf("meter"), version: 3 };
      expect(await iot.updateFirmware(changed)).toMatchObject(rejected(otherImage, "SIGNATURE_INVALID"));
    });

    it("refuses firmware without a vendor for a device whose vendor is not pinned", async () => {
      const call = iot.updateFirmware({ ...signed(image), deviceId: idOf("lamp") });
      expect(await refusal(call)).toEqual({ code: "FailedPrecondition", reason: "VENDOR_MISSING" });
    });
  });

  if (!driver.sendsStreams) return;

  describe("UpdateFirmwareStream", () => {
    const chunks = [image, Buffer.alloc(100_000, "x"), otherImage];
    const whole = Buffer.concat(chunks);
    const header = () => ({ signature: signImage(vendor, whole), deviceId: idOf("camera"), version: 5 });

    it("accepts an image in chunks", async () => {
      const answer = await iot.updateFirmwareStream(toParts(header(), chunks));
      expect(answer).toMatchObject(accepted(whole));
      keep("camera", { firmwareVersion: 5, firmwareHash: answer.firmwareHash });
    });

    it("rejects an image that lacks a chunk", async () => {
      const answer = await iot.updateFirmwareStream(toParts(header(), chunks.slice(0, 2)));
      expect(answer).toMatchObject(rejected(Buffer.concat(chunks.slice(0, 2)), "SIGNATURE_INVALID"));
    });

    it("refuses an image without a header", async () => {
      expect(await refusal(iot.updateFirmwareStream(toParts(undefined, chunks)))).toEqual({
        code: "InvalidArgument",
        reason: "FIELD_INVALID",
      });
    });
  });
}

async function* toParts(
  header: { signature: Uint8Array; deviceId: string; version: number } | undefined,
  chunks: readonly Uint8Array[],
) {
  if (header) yield { part: { case: "header", value: header } } as const;
  for (const value of chunks) yield { part: { case: "chunk", value } } as const;
}
