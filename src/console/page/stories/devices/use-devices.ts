/** All steps of the story, so that its diagram sees them together. */
import { useRef } from "preact/hooks";
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { useForm } from "../../form.ts";
import { settings } from "../../settings.ts";
import { type StepState, useStep } from "../../step.tsx";
import { impersonateVendor, installFirmware, rollBack, sendChangedFirmware } from "./firmware-steps.ts";
import {
  type Authenticated,
  answerChallenge,
  impersonateDevice,
  makeKeys,
  type Registered,
  readDeviceToken,
  registerWithKey,
  repeatAnswer,
  repeatReading,
  sendChangedReading,
  sendReading,
} from "./steps.ts";

export type Devices = ReturnType<typeof useDevices>;

export function useDevices() {
  const form = useForm({ name: "Thermometer, hall 4", text: '{"celsius": 21.5}' });
  const { name, text } = form.values;
  const making = useStep(makeKeys);
  const registering = useStep((caller, keys) => registerWithKey(caller, keys, name), [making]);
  const authenticating = useStep((caller, registered) => answerChallenge(caller, registered), [registering]);
  const reading = useStep(
    (caller, registered, authenticated) =>
      readDeviceToken(caller, registered, authenticated, settings.services.has(TokenService.typeName)),
    [registering, authenticating],
  );
  return {
    form,
    making,
    registering,
    authenticating,
    repeating: useStep(repeatAnswer, [registering, authenticating]),
    pretending: useStep(impersonateDevice, [registering]),
    reading,
    ...useReadings(text, registering, authenticating),
    ...useFirmware(registering),
  };
}

function useReadings(
  text: string,
  registering: StepState<Registered>,
  authenticating: StepState<Authenticated>,
) {
  const lastSequence = useRef(0);
  const measuring = useStep(
    (caller, registered, authenticated) => {
      lastSequence.current += 1;
      return sendReading(caller, registered, authenticated, { text, sequence: lastSequence.current });
    },
    [registering, authenticating],
  );
  return {
    measuring,
    alteringReading: useStep(sendChangedReading, [registering, authenticating, measuring]),
    repeatingReading: useStep(repeatReading, [registering, authenticating, measuring]),
  };
}

function useFirmware(registering: StepState<Registered>) {
  const installing = useStep(installFirmware, [registering]);
  return {
    installing,
    rollingBack: useStep(rollBack, [registering, installing]),
    impersonating: useStep(impersonateVendor, [registering]),
    alteringFirmware: useStep(sendChangedFirmware, [registering, installing]),
  };
}
