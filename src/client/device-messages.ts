/**
 * The bytes that a device signs, and the context of each signature (proto/iot, IotService; FIPS 204, section 5.2).
 */

/**
 * Signing contexts, which prevent the reuse of a signature for a different purpose. For devices registered with them.
 */
export const deviceContexts = {
  challenge: new TextEncoder().encode("qsp-iot-challenge-v1"),
  numberedReading: new TextEncoder().encode("qsp-iot-numbered-reading-v1"),
} as const;

/** Builds the bytes to sign for a reading: the sequence number (8 bytes, big-endian), then the telemetry. */
export function joinReading(sequence: number, telemetry: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(8 + telemetry.length);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(sequence));
  bytes.set(telemetry, 8);
  return bytes;
}
