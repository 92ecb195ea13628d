/** What one client of the device service lives through, from its first device to the list of all. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { beforeAll, expect } from "vitest";
import { type DeviceSchema, IotService } from "#gen/iot/iot_service_pb.ts";
import type { IotClient } from "../services/devices-and-tunnels.ts";
import { makeSigner, type Signer } from "../services/node-crypto.ts";
import { createForeignClient } from "./foreign-client.ts";
import { tellOfAuthentication } from "./iot-story-authentication.ts";
import { tellOfHealth, tellOfLists, tellOfRegistration } from "./iot-story-devices.ts";
import { tellOfFirmware } from "./iot-story-firmware.ts";
import { tellOfRefusals } from "./iot-story-refusals.ts";
import { tellOfTelemetry } from "./iot-story-telemetry.ts";
import type { Teller } from "./stories.ts";

/** What ListDevices is to say of a device at the end of the story. */
export type KnownDevice = Omit<
  MessageInitShape<typeof DeviceSchema>,
  "$typeName" | "$unknown" | "registeredAt"
>;

/** What a service holds when a story begins: other stories may have been told to it. */
export interface Past {
  /** Counts the devices. */
  readonly devices: number;
  /** When the story began; milliseconds since 1970. */
  readonly beganMs: number;
}

/** What the chapters of a story share. */
export interface Stage extends Teller {
  readonly iot: IotClient;
  past(): Past;
  /** Keys that never leave their owners: of two devices and of the vendor of their firmware. */
  readonly meter: Signer;
  readonly camera: Signer;
  readonly vendor: Signer;
  /** Keeps what is new of a device under a name, for the tests that come after. */
  keep(name: string, news: KnownDevice): void;
  /** The deviceId of the device that was kept under a name. */
  idOf(name: string): string;
  /** All that was kept, in the order of registration. */
  known(): KnownDevice[];
}

/** Tells the story as consecutive tests. No other test uses the service at the same time. */
export function tellStory(teller: Teller): void {
  const stage = createStage(teller);
  tellOfRegistration(stage);
  tellOfAuthentication(stage);
  tellOfTelemetry(stage);
  tellOfFirmware(stage);
  tellOfRefusals(stage);
  tellOfLists(stage);
  tellOfHealth(stage);
}

function createStage({ driver, nextUrl }: Teller): Stage {
  const iot = createForeignClient(IotService, driver, nextUrl);
  let past: Past = { devices: 0, beganMs: 0 };
  beforeAll(async () => {
    const { deviceCount = 0 } = await iot.getHealth({});
    past = { devices: deviceCount, beganMs: Date.now() };
  });
  const kept = new Map<string, KnownDevice>();
  return {
    driver,
    nextUrl,
    iot,
    past: () => past,
    meter: makeSigner("ml-dsa-44"),
    camera: makeSigner("ml-dsa-44"),
    vendor: makeSigner("ml-dsa-87"),
    keep: (name, news) => void kept.set(name, { ...kept.get(name), ...news }),
    idOf(name) {
      const deviceId = kept.get(name)?.deviceId;
      if (deviceId === undefined) throw new Error(`no test before this one kept a device ${name}`);
      return deviceId;
    },
    known: () => [...kept.values()],
  };
}

/** Expects a time since the story began; servers run on this machine, by the same clock. */
export function expectRecent(time: Timestamp | undefined, { past }: Stage): void {
  expect(time && timestampMs(time)).toBeGreaterThanOrEqual(past().beganMs);
  expect(time && timestampMs(time)).toBeLessThanOrEqual(Date.now());
}
