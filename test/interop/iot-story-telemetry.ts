/** The chapter of a story in which devices send what they measure. */
import { describe, expect, it } from "vitest";
import { IotService } from "#gen/iot/iot_service_pb.ts";
import type { Signer } from "../services/node-crypto.ts";
import { signedReading } from "../services/own-device.ts";
import { bytesOf, flipBit } from "../support/bytes.ts";
import { canExchange, exchange } from "./exchange.ts";
import { expectRecent, type Stage } from "./iot-story.ts";
import { unknownDeviceId } from "./iot-story-refusals.ts";

/** What a device sends of a reading. */
function readingOf(signer: Signer, deviceId: string, sequence?: number) {
  const telemetry = bytesOf('{"celsius":21.5}');
  const signature = signer.sign(signedReading(telemetry, sequence));
  return { deviceId, telemetry, signature, ...(sequence !== undefined && { sequence }) };
}

const verified = { status: "success", verified: true, reason: "" };
const no = (reason: string) => ({ status: "success", verified: false, reason });

export function tellOfTelemetry(stage: Stage): void {
  const { iot, driver, nextUrl, keep, idOf, meter, camera } = stage;
  const ofMeter = (sequence?: number) => readingOf(meter, idOf("meter"), sequence);
  const ofCamera = (sequence?: number) => readingOf(camera, idOf("camera"), sequence);

  describe("SendTelemetry", () => {
    it("verifies a reading without a sequence, again and again, and tells when it came", async () => {
      await iot.sendTelemetry(ofCamera());
      const { receivedAt, ...verdict } = await iot.sendTelemetry(ofCamera());
      expect(verdict).toMatchObject(verified);
      expectRecent(receivedAt, stage);
      keep("camera", { lastSeenAt: receivedAt, readingForm: "PLAIN" });
    });

    it("does not verify a reading that was changed, and tells when it came", async () => {
      const reading = ofCamera();
      const changed = { ...reading, telemetry: flipBit(reading.telemetry) };
      const { receivedAt, ...verdict } = await iot.sendTelemetry(changed);
      expect(verdict).toMatchObject(no("SIGNATURE_INVALID"));
      expectRecent(receivedAt, stage);
    });

    it("verifies sequences that rise, as part of what the device signed", async () => {
      const far = 2 ** 40; // It has more than 32 bits.
      const readings = [ofMeter(7), ofMeter(7), ofMeter(6), { ...ofMeter(8), sequence: 9 }, ofMeter(far)];
      const reasons = [];
      for (const reading of readings) reasons.push((await iot.sendTelemetry(reading)).reason);
      expect(reasons).toEqual(["", "SEQUENCE_OLD", "SEQUENCE_OLD", "SIGNATURE_INVALID", ""]);
    });

    it("verifies a sequence once if it comes twice at one moment", async () => {
      const reading = ofMeter(2 ** 40 + 1);
      const verdicts = await Promise.all([iot.sendTelemetry(reading), iot.sendTelemetry(reading)]);
      expect(verdicts.map(({ reason }) => reason).sort()).toEqual(["", "SEQUENCE_OLD"]);
      const lastSeenAt = verdicts.find((verdict) => verdict.verified)?.receivedAt;
      keep("meter", { lastSeenAt, readingForm: "NUMBERED" });
    });
  });

  if (!canExchange(driver)) return;

  it("StreamTelemetry answers each reading in its place, and goes on after those it does not verify", async () => {
    const readings = [
      ofCamera(),
      { ...ofCamera(), deviceId: unknownDeviceId },
      { ...ofCamera(), signature: new Uint8Array(2419) },
      { ...ofCamera(), deviceId: idOf("meter") },
      ofCamera(1),
      ofMeter(),
      ofMeter(2 ** 40 + 2),
      ofMeter(2 ** 40 + 2),
      ofCamera(),
    ].map((reading) => ({ reading }));
    const method = IotService.method.streamTelemetry;
    const verdicts = await exchange(driver, nextUrl(), method, readings);
    expect(verdicts).toMatchObject([
      verified,
      no("DEVICE_NOT_FOUND"),
      no("LENGTH_INVALID"),
      no("SIGNATURE_INVALID"),
      no("SEQUENCE_NOT_EXPECTED"),
      no("SEQUENCE_REQUIRED"),
      verified,
      no("SEQUENCE_OLD"),
      verified,
    ]);
    for (const { receivedAt } of verdicts) expectRecent(receivedAt, stage);
    keep("meter", { lastSeenAt: verdicts[6]?.receivedAt });
    keep("camera", { lastSeenAt: verdicts[8]?.receivedAt });
  });
}
