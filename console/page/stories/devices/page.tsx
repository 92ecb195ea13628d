/** A device: it registers, authenticates, sends readings, and accepts firmware only from its vendor. */
import type { RefObject } from "preact";
import { useRef } from "preact/hooks";
import { reportBoth, reportBrowser, reportEqual, reportServer, sayExpected } from "../../checks.ts";
import { attack, send } from "../../parts/diagrams/sequence.ts";
import { bytes, change, checks, evidence, signatureSizes } from "../../parts/show.tsx";
import { textField } from "../../parts/step-fields.tsx";
import { defineSharedStory } from "../../story.tsx";
import { step } from "../../story-step.ts";
import { formatBytes, formatNumber } from "../../values.ts";
import {
  authenticating,
  device,
  judgeServer,
  making,
  mallory,
  parties,
  pretending,
  reading,
  registering,
  repeating,
  server,
  vendor,
} from "./enrolment-steps.tsx";
import {
  type FirmwareOutcome,
  imageBytes,
  impersonateVendor,
  installFirmware,
  newVersion,
  rollBack,
  sendChangedFirmware,
} from "./firmware.ts";
import { repeatReading, sendChangedReading, sendReading } from "./steps.ts";

/** The number of the last reading. */
type LastSequence = RefObject<number>;

const claim = "the device's signature over sequence and reading";

const measuring = step({
  title: "The device sends a reading",
  action: "Sign and send",
  why: `Each reading has a number, one higher than the last. The device signs the 8 bytes of the number and then the
    reading, so neither can be changed. The first reading also decides that all readings of this device have numbers.
    The call uses the device's own token.`,
  fields: { text: textField("Reading", '{"celsius": 21.5}') },
  after: { registering, authenticating },
  run: (caller, given, last: LastSequence) => {
    const sequence = (last.current ?? 0) + 1;
    last.current = sequence;
    return sendReading(caller, given.registering, given.authenticating, { text: given.text, sequence });
  },
  says: ({ verdicts, reason, ...sent }) =>
    verdicts.server
      ? `The server accepts reading ${formatNumber(sent.reading.sequence)}: ${formatBytes(sent.reading.telemetry.length)}, and a signature of ${formatBytes(sent.reading.signature.length)}.`
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

const alteringReading = step({
  title: "An attacker changes the reading in transit",
  action: "Change and send",
  why: "One bit of the reading is another one; number and signature are as they were.",
  after: { registering, authenticating, measuring },
  run: (caller, given) =>
    sendChangedReading(caller, given.registering, given.authenticating, given.measuring),
  says: ({ verdicts, reason }) =>
    sayExpected(!verdicts.server, `The server rejects it: ${reason}.`, "The server accepted it"),
  shows: ({ verdicts, ...altered }) => [change(altered.change), checks(reportBoth(claim, verdicts))],
  draws: (value) => [
    attack(mallory, server, "one bit changed", judgeServer(value?.verdicts.server, "accepted", value)),
  ],
});

const repeatingReading = step({
  title: "An attacker repeats an old reading",
  action: "Send it again",
  why: `Nothing was changed, so the signature is valid. Without the number, an old harmless reading could hide a new
    alarm.`,
  after: { registering, authenticating, measuring },
  run: (caller, given) => repeatReading(caller, given.registering, given.authenticating, given.measuring),
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
  draws: (value) => [
    attack(
      mallory,
      server,
      value ? `reading ${value.sequence} again` : "the reading again",
      judgeServer(value?.verdicts.server, "accepted", value),
    ),
  ],
});

const installing = step({
  title: "The vendor sends firmware",
  action: "Sign and send",
  why: `The image is ${formatNumber(imageBytes)} random bytes, as version ${newVersion}. The vendor signs its hash with
    ML-DSA-87. The server computes the hash of the received image, and accepts only the vendor of the registration.`,
  after: { registering },
  run: (caller, given) => installFirmware(caller, given.registering),
  says: ({ result, image, signature }) =>
    `${result}: ${formatBytes(image.length)}, and a signature of ${formatBytes(signature.length)}.`,
  shows: ({ image, digest, signature, ...outcome }) => [
    evidence(
      "Image, hash and signature",
      bytes("Image", image),
      bytes("SHA-256 of the image, which is signed", digest),
      bytes("Signature of the vendor", signature),
    ),
    checkFirmware(outcome),
    signatureSizes("ML-DSA-87", signature),
  ],
  draws: (value) => [send(vendor, server, `firmware, version ${newVersion}, signed`, judgeFirmware(value))],
});

const rollingBack = step({
  title: "Older firmware with a valid signature",
  action: `Send version ${newVersion - 1}`,
  why: `The vendor once signed version ${newVersion - 1} too, and it had a hole. The signature holds; the server refuses all
    the same, because the device has version ${newVersion}. The sender states the version; the vendor does not sign it.`,
  after: { registering, installing },
  run: (caller, given) => rollBack(caller, given.registering),
  says: (outcome) => sayRejected(outcome),
  shows: checkFirmware,
  draws: (value) => [attack(mallory, server, `version ${newVersion - 1}, genuine`, judgeFirmware(value))],
});

const impersonating = step({
  title: "Firmware of another vendor",
  action: "Sign with another vendor's key",
  why: `The request has a valid signature and the matching key. The key in a request proves nothing, because the device
    has a pinned vendor.`,
  after: { registering },
  run: (caller, given) => impersonateVendor(caller, given.registering),
  says: (outcome) => sayRejected(outcome),
  shows: ({ isOthers, ...outcome }) => [
    checks(reportBrowser("the signature, with the key in the request", isOthers)),
    checkFirmware(outcome),
  ],
  draws: (value) => [attack(mallory, server, "firmware signed by another vendor", judgeFirmware(value))],
});

const alteringFirmware = step({
  title: "Firmware with one bit changed",
  action: "Change and send",
  why: "The vendor's image and the vendor's signature; one bit of the image is another one.",
  after: { registering, installing },
  run: (caller, given) => sendChangedFirmware(caller, given.registering, given.installing),
  says: (outcome) => sayRejected(outcome),
  shows: ({ change: changed, ...outcome }) => [change(changed), checkFirmware(outcome)],
  draws: (value) => [attack(mallory, server, "firmware, one bit changed", judgeFirmware(value))],
});

function sayRejected({ result, reason, isAccepted }: FirmwareOutcome): string {
  return sayExpected(!isAccepted, `${result}: ${reason}.`, result);
}

function checkFirmware({ isSameHash, isVendors, isAccepted, reason }: FirmwareOutcome) {
  return checks(
    reportEqual("the hash that the server computed", isSameHash),
    reportBrowser("the pinned vendor's signature over the hash", isVendors),
    reportServer("vendor, signature and version", isAccepted, isAccepted ? "accepted" : reason),
  );
}

function judgeFirmware(outcome: FirmwareOutcome | undefined) {
  return judgeServer(outcome?.isAccepted, "accepted", outcome);
}

export const Page = defineSharedStory<LastSequence>({
  title: "Devices",
  lead: `A device is small, remote, and in use for twenty years. It has its own secret key, signs with ML-DSA-44, and is
    identified by its public key. Here your browser acts as the device and as its firmware vendor.`,
  parties,
  useShared: () => useRef(0),
  steps: [
    making,
    registering,
    authenticating,
    repeating,
    pretending,
    reading,
    measuring,
    alteringReading,
    repeatingReading,
    installing,
    rollingBack,
    impersonating,
    alteringFirmware,
  ],
});
