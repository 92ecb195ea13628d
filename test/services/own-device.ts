/** Devices that keep their own keys, and what they sign. */
import { bytesOf } from "../support/bytes.ts";
import type { IotClient } from "./devices-and-tunnels.ts";
import { makeSigner, type Signer } from "./node-crypto.ts";

export const noSuchDevice = "device-00000000-0000-4000-8000-000000000000";
export const telemetry = bytesOf('{"celsius":21.5}');

/** A device that keeps its own key and signs without contexts. */
export interface OwnDevice extends Signer {
  readonly deviceId: string;
}

/** Registers a device with its own key. */
export async function registerOwn(iot: IotClient, vendorPublicKey = new Uint8Array()): Promise<OwnDevice> {
  const signer = makeSigner("ml-dsa-44");
  const { deviceId } = await iot.registerDevice({ publicKey: signer.publicKey, vendorPublicKey });
  return { ...signer, deviceId };
}

/** Requests a challenge for a device; returns its response. */
export async function respond(iot: IotClient, { deviceId, sign }: OwnDevice) {
  const { challenge } = await iot.issueChallenge({ deviceId });
  return { deviceId, challenge, signature: sign(challenge) };
}

/** Builds a signed reading. */
export function readingOf({ deviceId, sign }: OwnDevice, sequence?: number) {
  const signature = sign(signedReading(telemetry, sequence));
  return { deviceId, telemetry, signature, ...(sequence !== undefined && { sequence }) };
}

/**
 * Returns the signed bytes of a reading: the 8 bytes of its sequence number, if it has one, and the
 * telemetry.
 */
export function signedReading(content: Uint8Array, sequence?: number): Uint8Array<ArrayBuffer> {
  const prefix = Buffer.alloc(sequence === undefined ? 0 : 8);
  if (sequence !== undefined) prefix.writeBigUInt64BE(BigInt(sequence));
  return Uint8Array.from(Buffer.concat([prefix, content]));
}

/** Why each reading of a stream was not verified; empty for a verified one. */
export async function reasonsOf(verdicts: AsyncIterable<{ readonly reason: string }>): Promise<string[]> {
  const reasons: string[] = [];
  for await (const { reason } of verdicts) reasons.push(reason);
  return reasons;
}
