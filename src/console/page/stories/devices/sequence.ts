/** The sequence diagram of a device: its vendor, the server, and an attacker who tries to pass for either. */
import {
  type Act,
  attack,
  drawAct,
  find,
  judge,
  type Party,
  send,
  type Verdict,
  withSize,
} from "../../parts/diagrams/sequence.ts";
import type { StepView, StepViewOf } from "../../parts/diagrams/step-view.ts";
import { type FirmwareOutcome, newVersion } from "./firmware-steps.ts";
import type {
  Authenticated,
  makeKeys,
  Registered,
  readDeviceToken,
  repeatAnswer,
  repeatReading,
  SentReading,
  sendChangedReading,
} from "./steps.ts";

/** The steps by name. */
export interface DeviceSteps {
  readonly making: StepViewOf<typeof makeKeys>;
  readonly registering: StepView<Registered>;
  readonly authenticating: StepView<Authenticated>;
  readonly repeating: StepViewOf<typeof repeatAnswer>;
  readonly pretending: StepView<Authenticated>;
  readonly reading: StepViewOf<typeof readDeviceToken>;
  readonly measuring: StepView<SentReading>;
  readonly alteringReading: StepViewOf<typeof sendChangedReading>;
  readonly repeatingReading: StepViewOf<typeof repeatReading>;
  readonly installing: StepView<FirmwareOutcome>;
  readonly rollingBack: StepView<FirmwareOutcome>;
  readonly impersonating: StepView<FirmwareOutcome>;
  readonly alteringFirmware: StepView<FirmwareOutcome>;
}

export const parties: readonly Party[] = [
  { name: "Vendor" },
  { name: "Device" },
  { name: "Mallory", isAttacker: true },
  { name: "Server" },
];
const [vendor, device, mallory, server] = [0, 1, 2, 3];

/** The titles of the steps, by name. */
export const titles: Readonly<Record<keyof DeviceSteps, string>> = {
  making: "The device and its vendor generate their keys",
  registering: "Register the device",
  authenticating: "The device authenticates",
  repeating: "The same answer again",
  pretending: "Another device uses its ID",
  reading: "Decode its token",
  measuring: "The device sends a reading",
  alteringReading: "An attacker changes the reading in transit",
  repeatingReading: "An attacker repeats an old reading",
  installing: "The vendor sends firmware",
  rollingBack: "Older firmware with a valid signature",
  impersonating: "Firmware of another vendor",
  alteringFirmware: "Firmware with one bit changed",
};

/** Draws the steps in their order. */
export function drawDevices(steps: DeviceSteps): readonly Act[] {
  return [...drawEnrolment(steps), ...drawImposture(steps), ...drawReadings(steps), ...drawFirmware(steps)];
}

function drawEnrolment({ making, registering, authenticating }: DeviceSteps): readonly Act[] {
  return [
    drawAct(titles.making, making, (value) => [
      find([vendor, device], "key pair", undefined, value?.vendor.publicKey, value?.device.publicKey),
    ]),
    drawAct(titles.registering, registering, (value) => [
      send(device, server, withSize("public key", value?.device.publicKey)),
      send(vendor, server, withSize("public key", value?.vendor.publicKey)),
      find(server, "It registers the device.", judge(value?.isSameKey, "with its key", "with another key")),
    ]),
    drawAct(titles.authenticating, authenticating, (value) => [
      send(server, device, withSize("challenge", value?.challenge)),
      send(
        device,
        server,
        withSize("signature", value?.signature),
        judge(value?.verdicts.server, "valid", `refused: ${value?.reason}`),
      ),
      send(server, device, "token"),
    ]),
  ];
}

function drawImposture({ repeating, pretending, reading }: DeviceSteps): readonly Act[] {
  return [
    drawAct(titles.repeating, repeating, (value) => [
      attack(
        mallory,
        server,
        "the signature, recorded",
        judge(value?.authenticated, "accepted", `refused: ${value?.reason}`),
      ),
    ]),
    drawAct(titles.pretending, pretending, (value) => [
      send(server, mallory, "new challenge"),
      attack(
        mallory,
        server,
        "signed with another key",
        judge(value?.verdicts.server, "accepted", `refused: ${value?.reason}`),
      ),
    ]),
    drawAct(titles.reading, reading, (value) => [
      find(device, "The token names it.", judge(value?.isSubject, "same ID", "another ID")),
    ]),
  ];
}

function drawReadings({ measuring, alteringReading, repeatingReading }: DeviceSteps): readonly Act[] {
  return [
    drawAct(titles.measuring, measuring, (value) => [
      send(
        device,
        server,
        value ? `reading ${value.reading.sequence}, signed` : "reading, signed",
        judge(value?.verdicts.server, "valid", `refused: ${value?.reason}`),
      ),
    ]),
    drawAct(titles.alteringReading, alteringReading, (value) => [
      attack(
        mallory,
        server,
        "one bit changed",
        judge(value?.verdicts.server, "accepted", `refused: ${value?.reason}`),
      ),
    ]),
    drawAct(titles.repeatingReading, repeatingReading, (value) => [
      attack(
        mallory,
        server,
        value ? `reading ${value.sequence} again` : "the reading again",
        judge(value?.verdicts.server, "accepted", `refused: ${value?.reason}`),
      ),
    ]),
  ];
}

function drawFirmware(steps: DeviceSteps): readonly Act[] {
  const { installing, rollingBack, impersonating, alteringFirmware } = steps;
  return [
    drawAct(titles.installing, installing, (value) => [
      send(vendor, server, `firmware, version ${newVersion}, signed`, judgeFirmware(value)),
    ]),
    drawAct(titles.rollingBack, rollingBack, (value) => [
      attack(mallory, server, `version ${newVersion - 1}, genuine`, judgeFirmware(value)),
    ]),
    drawAct(titles.impersonating, impersonating, (value) => [
      attack(mallory, server, "firmware signed by another vendor", judgeFirmware(value)),
    ]),
    drawAct(titles.alteringFirmware, alteringFirmware, (value) => [
      attack(mallory, server, "firmware, one bit changed", judgeFirmware(value)),
    ]),
  ];
}

function judgeFirmware(outcome: FirmwareOutcome | undefined): Verdict | undefined {
  return judge(outcome?.isAccepted, "accepted", `refused: ${outcome?.reason}`);
}
