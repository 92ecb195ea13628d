/** The chapter of a story in which calls are refused. */
import { describe, expect, it } from "vitest";
import type { IotClient } from "../services/devices-and-tunnels.ts";
import { bytesOf } from "../support/bytes.ts";
import { type Refusal, refusal } from "../support/refusal.ts";
import type { Stage } from "./iot-story.ts";

/** No service has this device; its name needs care in JSON. */
export const unknownDeviceId = 'no such/device? "é" & 100%+😀';

const data = bytesOf("hello");

/** @param deviceId of a device of the story */
type MakeCall = (iot: IotClient, deviceId: string) => Promise<unknown>;

const wrongCalls: readonly (readonly [title: string, call: MakeCall, refusal: Refusal])[] = [
  [
    "a challenge for a device that is not there",
    (iot) => iot.issueChallenge({ deviceId: unknownDeviceId }),
    { code: "NotFound", reason: "DEVICE_NOT_FOUND" },
  ],
  [
    "a public key of an impossible length",
    (iot) => iot.registerDevice({ publicKey: data }),
    { code: "InvalidArgument", reason: "KEY_INVALID" },
  ],
  [
    "a signature of an impossible length",
    (iot, deviceId) => iot.updateFirmware({ deviceId, firmware: data, signature: data }),
    { code: "InvalidArgument", reason: "LENGTH_INVALID" },
  ],
  [
    "a sequence that is not whole",
    (iot, deviceId) => iot.sendTelemetry({ deviceId, telemetry: data, signature: data, sequence: 2.5 }),
    { code: "InvalidArgument", reason: "FIELD_INVALID" },
  ],
  [
    "the page token of another list",
    (iot) => iot.listDevices({ pageToken: "hello" }),
    { code: "InvalidArgument", reason: "FIELD_INVALID" },
  ],
];

export function tellOfRefusals({ iot, idOf }: Stage): void {
  describe("refused is", () => {
    it.each(wrongCalls)("%s", async (_title, call, expected) => {
      expect(await refusal(call(iot, idOf("meter")))).toEqual(expected);
    });
  });
}
