import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { IotService } from "#gen/iot/iot_service_pb.ts";
import { makeSigningKey } from "../../page/signing-key.ts";
import {
  impersonateVendor,
  installFirmware,
  rollBack,
  sendChangedFirmware,
} from "../../page/stories/devices/firmware.ts";
import { createFakeCaller } from "./fake-caller.ts";

/** A server that accepts all firmware. */
const caller = createFakeCaller(({ service }) =>
  service(IotService, {
    updateFirmware: ({ firmware, version }) => ({
      result: "FIRMWARE_ACCEPTED",
      reason: `version ${version}`,
      firmwareHash: createHash("sha256").update(firmware).digest("hex"),
    }),
  }),
);
const target = { deviceId: "device-1", vendor: await makeSigningKey("ML-DSA-87") };

describe("firmware", () => {
  it("of the vendor has the hash that the server computed, and the vendor's signature", async () => {
    expect(await installFirmware(caller, target)).toMatchObject({
      reason: "version 2",
      isAccepted: true,
      isSameHash: true,
      isVendors: true,
    });
  });

  it("of an older version is signed all the same", async () => {
    expect(await rollBack(caller, target)).toMatchObject({ reason: "version 1", isVendors: true });
  });

  it("of another vendor is found to be signed by that vendor", async () => {
    expect(await impersonateVendor(caller, target)).toMatchObject({ isVendors: false, isOthers: true });
  });

  it("with one bit changed is found not to be signed", async () => {
    const installed = await installFirmware(caller, target);
    const changed = await sendChangedFirmware(caller, target, installed);
    expect(changed).toMatchObject({ isSameHash: true, isVendors: false });
  });

  it("that the server hashed otherwise is found to be different", async () => {
    const other = createFakeCaller(({ service }) =>
      service(IotService, { updateFirmware: () => ({ firmwareHash: "0".repeat(64) }) }),
    );
    expect(await installFirmware(other, target)).toMatchObject({ isAccepted: false, isSameHash: false });
  });
});
