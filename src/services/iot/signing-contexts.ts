/** The kinds of messages that a device signs, and their contexts (FIPS 204, section 5.2). */
import type { SignatureOptions } from "../../crypto/provider.ts";

/** Contexts by purpose, for devices registered with signing contexts. Part of the wire contract. */
const contexts = {
  CHALLENGE: Buffer.from("qsp-iot-challenge-v1"),
  READING: Buffer.from("qsp-iot-reading-v1"),
  NUMBERED_READING: Buffer.from("qsp-iot-numbered-reading-v1"),
} as const;

/** Purpose of a signature, as SimulatedSign names it. */
export type SigningPurpose = keyof typeof contexts;

/**
 * Narrows a value that the proto's rules admit.
 *
 * @returns undefined for the empty string
 */
export function readPurpose(text: string): SigningPurpose | undefined {
  if (text === "") return undefined;
  if (Object.hasOwn(contexts, text)) return text as SigningPurpose;
  throw new Error(`the proto admits the purpose ${text}, which has no context`);
}

/**
 * Returns the signature options for a device: an empty context, unless it registered with signing contexts.
 */
export function findSignatureOptions(
  { hasSigningContexts }: { readonly hasSigningContexts: boolean },
  purpose: SigningPurpose,
): SignatureOptions {
  return hasSigningContexts ? { context: contexts[purpose] } : {};
}

/**
 * Builds the bytes that a device signs for a reading: the sequence, if any (8 bytes, big-endian), and the
 * telemetry.
 */
export function buildSignedBytes(telemetry: Uint8Array, sequence: number | undefined): Uint8Array {
  if (sequence === undefined) return telemetry;
  const bytes = Buffer.alloc(8 + telemetry.length);
  bytes.writeBigUInt64BE(BigInt(sequence));
  bytes.set(telemetry, 8);
  return bytes;
}
