/** What a device may send and install next, and what that leaves in its state. */
import { describe, expect, it } from "vitest";
import {
  acceptReading,
  type DeviceState,
  installImage,
  newDeviceState,
} from "../../src/services/iot/device-state.ts";

/** Applies steps to a new device; returns the fault of each, empty if there is none, and the last state. */
function run<Step>(steps: readonly Step[], apply: (state: DeviceState, step: Step) => DeviceState | string) {
  let state = newDeviceState;
  const faults = steps.map((step) => {
    const next = apply(state, step);
    if (typeof next === "string") return next;
    state = next;
    return "";
  });
  return { faults, state };
}

describe("acceptReading", () => {
  const receivedAt = new Date();
  const accept = (state: DeviceState, sequence: number | undefined) =>
    acceptReading(state, { sequence, receivedAt });
  const [old, required] = ["SEQUENCE_OLD", "SEQUENCE_REQUIRED"];
  const largest = Number.MAX_SAFE_INTEGER;

  const rising = [0, 0, 5, 5, 4, 6, largest, largest];
  it.each<[string, (number | undefined)[], string[]]>([
    ["accepts rising sequences only", rising, ["", old, "", old, old, "", "", old]],
    ["requires a sequence after a numbered reading", [3, undefined, 3, 4], ["", required, old, ""]],
    ["accepts none after a plain reading", [undefined, undefined, 1], ["", "", "SEQUENCE_NOT_EXPECTED"]],
  ])("%s", (_what, sequences, faults) => {
    expect(run(sequences, accept).faults).toEqual(faults);
  });
});

describe("installImage", () => {
  /** Installs an image that is offered as `hash` or as `hash@version`. */
  const install = (state: DeviceState, offer: string) => {
    const [firmwareHash = "", version] = offer.split("@");
    return installImage(state, {
      firmwareHash,
      version: version === undefined ? undefined : Number(version),
    });
  };
  const [required, rollback, former] = ["VERSION_REQUIRED", "VERSION_ROLLBACK", "IMAGE_ROLLBACK"];
  const claimed = ["", "", former, former, "", "", former, former];

  it.each<[string, string, string[]]>([
    ["accepts any image while none has a version", "a b a", ["", "", ""]],
    ["accepts an equal or higher version", "a@5 b@4 c@5 d@6", ["", rollback, "", ""]],
    ["requires a version from version 0 on", "a@0 a b", ["", required, required]],
    ["rejects former images, whatever version is claimed", "a@4 b@5 a@5 a@6 b@6 c@7 a@8 b@8", claimed],
    ["rejects images from before versions", "a b a a@1 b@2 c@2 a@3", ["", "", "", "", former, "", former]],
  ])("%s", (_what, offers, faults) => {
    expect(run(offers.split(" "), install).faults).toEqual(faults);
  });

  it("forgets none of 1,000 former images, and then accepts no other", () => {
    const { state } = run(
      Array.from({ length: 1001 }, (_, n) => `${n}@${n}`),
      install,
    );
    expect(state.formerImages).toHaveLength(1000);
    expect(install(state, "new@1001")).toBe("IMAGE_LIMIT");
    expect(install(state, "0@1001")).toBe("IMAGE_ROLLBACK");
    expect(install(state, "1000@1001")).toMatchObject({ firmwareVersion: 1001 });
  });
});
