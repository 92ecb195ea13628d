/** A device registers, authenticates, sends readings, and accepts firmware only from its vendor. */
import type { RefObject } from "preact";
import { useRef } from "preact/hooks";
import { IotService } from "#gen/iot/iot_service_pb.ts";
import { deviceContexts, joinReading } from "../../../../src/client/device-messages.ts";
import { verifyHere } from "../../algorithms.ts";
import type { Caller } from "../../caller.ts";
import { reportBoth, reportBrowser, reportServer, sayExpected } from "../../checks.ts";
import { send } from "../../parts/diagrams/sequence.ts";
import { bytes, change, checks, evidence } from "../../parts/show.tsx";
import { textField } from "../../parts/step-fields.tsx";
import { defineSharedStory } from "../../story.tsx";
import { step } from "../../story-step.ts";
import { changeByte, formatBytes, formatNumber, toUtf8 } from "../../values.ts";
import * as enrolment from "./enrolment-steps.tsx";
import * as firmware from "./firmware-steps.tsx";
import * as fleet from "./fleet-steps.tsx";

const { attackServer, authenticating, device, judgeServer, registering, server } = enrolment;

/** The last reading's number. */
type LastSequence = RefObject<number>;

const claim = "the device's signature over sequence and reading";

/** A numbered reading as the device signed it. */
interface Reading {
  readonly telemetry: Uint8Array;
  readonly sequence: number;
  readonly signature: Uint8Array;
}

/** Sends a reading with the device's own token, and verifies it here. */
async function sendReading(
  { call }: Caller,
  { deviceId, device: { algorithm, publicKey } }: enrolment.Registered,
  token: string,
  reading: Reading,
) {
  const { verified: server, reason } = await call(
    IotService.method.sendTelemetry,
    { deviceId, ...reading },
    { token },
  );
  const signed = joinReading(reading.sequence, reading.telemetry);
  const context = deviceContexts.numberedReading;
  const browser = await verifyHere(algorithm, reading.signature, signed, publicKey, context);
  return { reason, verdicts: { server, browser } };
}

export const measuring = step({
  title: "The device sends a reading",
  action: "Sign and send",
  why: `Each reading has a number, one higher than the last. The device signs the 8-byte number followed by the
    reading, so neither can be changed. Once the first reading is numbered, all readings of this device must be.
    The call uses the device's own token.`,
  fields: { text: textField("Reading", '{"celsius": 21.5}') },
  after: { registering, authenticating },
  run: async (caller, { registering: registered, authenticating: { token }, text }, last: LastSequence) => {
    const sequence = (last.current ?? 0) + 1;
    last.current = sequence;
    const telemetry = toUtf8(text);
    const signed = joinReading(sequence, telemetry);
    const signature = registered.device.sign(signed, deviceContexts.numberedReading);
    const reading: Reading = { telemetry, sequence, signature };
    return { reading, signed, ...(await sendReading(caller, registered, token, reading)) };
  },
  says: ({ verdicts, reason, ...sent }) =>
    verdicts.server
      ? `The server accepts reading ${formatNumber(sent.reading.sequence)}: ${formatBytes(sent.reading.telemetry.length)}, with a signature of ${formatBytes(sent.reading.signature.length)}.`
      : `The server rejects it: ${reason}.`,
  shows: ({ signed, verdicts, ...sent }) => [
    evidence(
      "Signed bytes and signature",
      bytes("Signed bytes: sequence and reading", signed),
      bytes("Signature", sent.reading.signature),
    ),
    checks(reportBoth(claim, verdicts)),
  ],
  draws: (value) => [
    send(
      device,
      server,
      value ? `reading ${value.reading.sequence}, signed` : "reading, signed",
      judgeServer(value?.verdicts.server, "valid", value),
    ),
  ],
});

export const alteringReading = step({
  title: "An attacker changes the reading in transit",
  action: "Change and send",
  why: "One bit of the reading is flipped; number and signature are unchanged.",
  after: { registering, authenticating, measuring },
  run: async (caller, { registering: registered, authenticating: { token }, measuring: { reading } }) => {
    const change = changeByte(reading.telemetry, Math.floor(reading.telemetry.length / 2));
    const changed = { ...reading, telemetry: change.after };
    return { change, ...(await sendReading(caller, registered, token, changed)) };
  },
  says: ({ verdicts, reason }) =>
    sayExpected(!verdicts.server, `The server rejects it: ${reason}.`, "The server accepted it"),
  shows: ({ verdicts, ...altered }) => [change(altered.change), checks(reportBoth(claim, verdicts))],
  draws: (value) => [attackServer("one bit changed", value)],
});

export const repeatingReading = step({
  title: "An attacker replays an old reading",
  action: "Send it again",
  why: `Nothing was changed, so the signature is valid. Without the number, an old, harmless reading could hide a new
    alarm.`,
  after: { registering, authenticating, measuring },
  run: async (caller, { registering: registered, authenticating: { token }, measuring: { reading } }) => ({
    sequence: reading.sequence,
    ...(await sendReading(caller, registered, token, reading)),
  }),
  says: ({ sequence, verdicts, reason }) =>
    sayExpected(
      !verdicts.server,
      `The server rejects reading ${formatNumber(sequence)} again: ${reason}.`,
      "The server accepted it twice",
    ),
  shows: ({ verdicts }) =>
    checks(
      reportBrowser(claim, verdicts.browser),
      reportServer(
        "the sequence, compared with the last accepted one",
        verdicts.server,
        verdicts.server ? "new" : "old",
      ),
    ),
  draws: (value) => [attackServer(value ? `reading ${value.sequence} again` : "the reading again", value)],
});

export const Page = defineSharedStory<LastSequence>({
  title: "Devices",
  lead: `A device is small and remote, and stays in use for twenty years. It has its own secret key, signs
    with ML-DSA-44, and is identified by its public key. Here your browser acts as the device and as its
    firmware vendor.`,
  parties: enrolment.parties,
  useShared: () => useRef(0),
  steps: [
    enrolment.making,
    registering,
    authenticating,
    enrolment.repeating,
    enrolment.pretending,
    enrolment.reading,
    measuring,
    alteringReading,
    repeatingReading,
    firmware.installing,
    firmware.rollingBack,
    firmware.impersonating,
    firmware.altering,
    fleet.reporting,
    fleet.listing,
  ],
});
