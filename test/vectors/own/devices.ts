/** Vectors of devices: readings, answers to challenges, and firmware. */
import { createHash } from "node:crypto";
import { buildSignedBytes } from "../../../src/services/iot/signing-contexts.ts";
import { fixedBytes, mlDsaKey } from "./keys.ts";
import { awkwardText, utf8, type Values, type VectorCase, type VectorSet, vectorCase } from "./vector-set.ts";

const device = mlDsaKey("ML-DSA-44", "device");

/** The context of each use, for a device with signing contexts. */
const contexts = {
  challenge: utf8("qsp-iot-challenge-v1"),
  reading: utf8("qsp-iot-reading-v1"),
  numberedReading: utf8("qsp-iot-numbered-reading-v1"),
};
const noContext = new Uint8Array();

/** How a case signs. Bytes or a context that differ from the format make it invalid. */
interface Signing {
  readonly signingContexts?: boolean;
  readonly otherBytes?: Uint8Array;
  readonly otherContext?: Uint8Array;
}

function deviceCase(
  name: string,
  input: Values,
  message: Uint8Array,
  { use, signingContexts = false, otherBytes, otherContext }: Signing & { use: keyof typeof contexts },
): VectorCase {
  const context = signingContexts ? contexts[use] : noContext;
  return vectorCase(name, {
    valid: otherBytes === undefined && otherContext === undefined,
    input: { key: "device", signingContexts, ...input },
    intermediate: { signedBytes: message.toHex(), context: context.toHex() },
    result: { signature: device.sign(otherBytes ?? message, otherContext ?? context).toHex() },
  });
}

function readingCase(
  name: string,
  { telemetry, sequence, ...signing }: Signing & { telemetry: Uint8Array; sequence?: number },
): VectorCase {
  const input = { kind: "reading", telemetry: telemetry.toHex(), sequence: sequence ?? null };
  const use = sequence === undefined ? "reading" : "numberedReading";
  return deviceCase(name, input, buildSignedBytes(telemetry, sequence), { ...signing, use });
}

function challengeCase(name: string, challenge: Uint8Array, signing: Signing = {}): VectorCase {
  const input = { kind: "challenge", challenge: challenge.toHex() };
  return deviceCase(name, input, challenge, { ...signing, use: "challenge" });
}

/** Readings with and without a number, and answers to challenges: with an empty context, and with signing contexts. */
export function telemetryVectors(): VectorSet {
  return {
    format: "qsp-vectors/1",
    name: "telemetry",
    specification: "docs/formats.md#telemetry-and-challenges",
    note: "sequence is null for a reading without a number. The signatures are deterministic; devices may sign hedged.",
    keys: { device: device.entry },
    cases: [...casesWithEmptyContext(), ...casesWithContexts()],
  };
}

const telemetry = utf8("21.5 C");
const challenge = fixedBytes("challenge", 32);

function casesWithEmptyContext(): VectorCase[] {
  const littleEndian = Buffer.concat([Buffer.of(1, 0, 0, 0, 0, 0, 0, 0), telemetry]);
  const decimal = Buffer.concat([utf8("1"), telemetry]);
  return [
    readingCase("without a number", { telemetry }),
    readingCase("without a number, one byte", { telemetry: Uint8Array.of(0) }),
    readingCase("without a number, non-ASCII text", { telemetry: utf8(awkwardText) }),
    readingCase("number 0", { telemetry, sequence: 0 }),
    readingCase("number 1", { telemetry, sequence: 1 }),
    readingCase("number 258, non-ASCII text", { telemetry: utf8(awkwardText), sequence: 258 }),
    readingCase("the largest number", { telemetry, sequence: Number.MAX_SAFE_INTEGER }),
    readingCase("a little-endian number", { telemetry, sequence: 1, otherBytes: littleEndian }),
    readingCase("a number in decimal digits", { telemetry, sequence: 1, otherBytes: decimal }),
    readingCase("a number that is not signed", { telemetry, sequence: 1, otherBytes: telemetry }),
    readingCase("a context of a device that has none", { telemetry, otherContext: contexts.reading }),
    challengeCase("an answer to a challenge", challenge),
    challengeCase("an answer to the hexadecimal digits of a challenge", challenge, {
      otherBytes: utf8(challenge.toHex()),
    }),
  ];
}

function casesWithContexts(): VectorCase[] {
  const reading = { telemetry, signingContexts: true };
  const numbered = { ...reading, sequence: 1 };
  const signingContexts = true;
  return [
    readingCase("contexts: without a number", reading),
    readingCase("contexts: number 0", { ...reading, sequence: 0 }),
    readingCase("contexts: number 1", numbered),
    readingCase("contexts: the largest number, non-ASCII text", {
      ...{ telemetry: utf8(awkwardText), sequence: Number.MAX_SAFE_INTEGER, signingContexts },
    }),
    readingCase("contexts: a reading with an empty context", { ...reading, otherContext: noContext }),
    readingCase("contexts: a number with the context of readings without one", {
      ...numbered,
      otherContext: contexts.reading,
    }),
    readingCase("contexts: a numbered reading, sent as telemetry without a number", {
      ...{
        telemetry: buildSignedBytes(telemetry, 1),
        signingContexts,
        otherContext: contexts.numberedReading,
      },
    }),
    readingCase("contexts: an answer to a challenge, sent as a reading", {
      ...{ telemetry: challenge, signingContexts, otherContext: contexts.challenge },
    }),
    challengeCase("contexts: an answer to a challenge", challenge, { signingContexts }),
    challengeCase("contexts: an answer with an empty context", challenge, {
      ...{ signingContexts, otherContext: noContext },
    }),
    challengeCase("contexts: a reading, sent as an answer to a challenge", challenge, {
      ...{ signingContexts, otherContext: contexts.reading },
    }),
  ];
}

/** Signatures of firmware. */
export function firmwareVectors(): VectorSet {
  const vendor = mlDsaKey("ML-DSA-87", "firmware vendor");
  const make = (name: string, firmware: Uint8Array, signed?: Uint8Array): VectorCase => {
    const hash = createHash("sha256").update(firmware).digest();
    return vectorCase(name, {
      valid: signed === undefined,
      input: { key: "vendor", firmware: firmware.toHex() },
      intermediate: { signedBytes: hash.toString("hex") },
      result: { firmwareHash: hash.toString("hex"), signature: vendor.sign(signed ?? hash).toHex() },
    });
  };
  const image = utf8("firmware 1.0");
  return {
    format: "qsp-vectors/1",
    name: "firmware",
    specification: "docs/formats.md#firmware",
    note: "The signatures are deterministic; vendors may sign hedged.",
    keys: { vendor: vendor.entry },
    cases: [
      make("text", image),
      make("one zero byte", Uint8Array.of(0)),
      make("a signature over the image itself", image, image),
    ],
  };
}
