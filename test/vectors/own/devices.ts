/** Vectors of devices: readings, answers to challenges, and firmware. */
import { createHash } from "node:crypto";
import { signedBytesOf } from "../../../src/services/iot/signing-contexts.ts";
import { fixedBytes, mlDsaKey } from "./keys.ts";
import { awkwardText, utf8, type VectorCase, type VectorSet, vectorCase } from "./vector-set.ts";

const device = mlDsaKey("ML-DSA-44", "device");

function readingCase(
  name: string,
  { telemetry, sequence, signed }: { telemetry: Uint8Array; sequence?: number; signed?: Uint8Array },
): VectorCase {
  const message = signedBytesOf(telemetry, sequence);
  return vectorCase(name, {
    valid: signed === undefined,
    input: { key: "device", kind: "reading", telemetry: telemetry.toHex(), sequence: sequence ?? null },
    intermediate: { signedBytes: Buffer.from(message).toString("hex") },
    result: { signature: device.sign(signed ?? message).toHex() },
  });
}

function challengeCase(name: string, challenge: Uint8Array, signed = challenge): VectorCase {
  return vectorCase(name, {
    valid: signed === challenge,
    input: { key: "device", kind: "challenge", challenge: challenge.toHex() },
    intermediate: { signedBytes: challenge.toHex() },
    result: { signature: device.sign(signed).toHex() },
  });
}

/** Readings with and without a number, and answers to challenges. */
export function telemetryVectors(): VectorSet {
  const telemetry = utf8("21.5 C");
  const littleEndian = Buffer.concat([Buffer.of(1, 0, 0, 0, 0, 0, 0, 0), telemetry]);
  const decimal = Buffer.concat([utf8("1"), telemetry]);
  const challenge = fixedBytes("challenge", 32);
  return {
    format: "qsp-vectors/1",
    name: "telemetry",
    specification: "docs/protocol.md#telemetry-and-challenges",
    note: "sequence is null for a reading without a number. The signatures are deterministic; devices may sign hedged.",
    keys: { device: device.entry },
    cases: [
      readingCase("without a number", { telemetry }),
      readingCase("without a number, one byte", { telemetry: Uint8Array.of(0) }),
      readingCase("without a number, non-ASCII text", { telemetry: utf8(awkwardText) }),
      readingCase("number 0", { telemetry, sequence: 0 }),
      readingCase("number 1", { telemetry, sequence: 1 }),
      readingCase("number 258, non-ASCII text", { telemetry: utf8(awkwardText), sequence: 258 }),
      readingCase("the largest number", { telemetry, sequence: Number.MAX_SAFE_INTEGER }),
      readingCase("a little-endian number", { telemetry, sequence: 1, signed: littleEndian }),
      readingCase("a number in decimal digits", { telemetry, sequence: 1, signed: decimal }),
      readingCase("a number that is not signed", { telemetry, sequence: 1, signed: telemetry }),
      challengeCase("an answer to a challenge", challenge),
      challengeCase("an answer to the hexadecimal digits of a challenge", challenge, utf8(challenge.toHex())),
    ],
  };
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
    specification: "docs/protocol.md#firmware",
    note: "The signatures are deterministic; vendors may sign hedged.",
    keys: { vendor: vendor.entry },
    cases: [
      make("text", image),
      make("one zero byte", Uint8Array.of(0)),
      make("a signature over the image itself", image, image),
    ],
  };
}
