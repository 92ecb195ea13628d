import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { IotService } from "#gen/iot/iot_service_pb.ts";
import { makeSigningKey } from "../../page/signing-key.ts";
import {
  altering,
  impersonating,
  installing,
  rollingBack,
} from "../../page/stories/devices/firmware-steps.tsx";
import { runStep, serve } from "./fake-caller.ts";

/** A server that accepts all firmware. */
const caller = serve(IotService, {
  updateFirmware: ({ firmware, version }) => ({
    result: "FIRMWARE_ACCEPTED",
    reason: `version ${version}`,
    firmwareHash: createHash("sha256").update(firmware).digest("hex"),
  }),
});
const given = { registering: { deviceId: "device-1", vendor: await makeSigningKey("ML-DSA-87") } };

describe("firmware", () => {
  it("from the vendor has the hash that the server computed, and the vendor's signature", async () => {
    expect(await runStep(installing, caller, given)).toMatchObject({
      reason: "version 2",
      isAccepted: true,
      isSameHash: true,
      isVendors: true,
    });
  });

  it("of an older version has a valid signature", async () => {
    const found = await runStep(rollingBack, caller, given);
    expect(found).toMatchObject({ reason: "version 1", isVendors: true });
  });

  it("from a different vendor is found to be signed by that vendor", async () => {
    const found = await runStep(impersonating, caller, given);
    expect(found).toMatchObject({ isVendors: false, isOthers: true });
  });

  it("with one bit changed is found not to be signed", async () => {
    const installed = await runStep(installing, caller, given);
    const changed = await runStep(altering, caller, { ...given, installing: installed });
    expect(changed).toMatchObject({ isSameHash: true, isVendors: false });
  });

  it("hashed differently by the server is found to be different", async () => {
    const other = serve(IotService, { updateFirmware: () => ({ firmwareHash: "0".repeat(64) }) });
    const found = await runStep(installing, other, given);
    expect(found).toMatchObject({ isAccepted: false, isSameHash: false });
  });
});
