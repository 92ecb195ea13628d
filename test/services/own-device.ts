/** Devices that keep their own keys, and what they sign. */
import type { IotClient } from "./devices-and-tunnels.ts";
import { makeSigner, type Signer } from "./node-crypto.ts";

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

/**
 * Returns the signed bytes of a reading: the 8 bytes of its sequence number, if it has one, and the
 * telemetry.
 */
export function signedReading(telemetry: Uint8Array, sequence?: number): Uint8Array {
  const prefix = Buffer.alloc(sequence === undefined ? 0 : 8);
  if (sequence !== undefined) prefix.writeBigUInt64BE(BigInt(sequence));
  return Buffer.concat([prefix, telemetry]);
}
