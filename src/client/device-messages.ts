/** What a device signs, and under which context (proto/iot, IotService; FIPS 204, section 5.2). */

/** The context of each use, for devices that registered with signing contexts: it keeps a signature to its use. */
export const deviceContexts = {
  challenge: new TextEncoder().encode("qsp-iot-challenge-v1"),
  numberedReading: new TextEncoder().encode("qsp-iot-numbered-reading-v1"),
} as const;

/** Joins what a device signs for a reading: 8 bytes of its sequence, big-endian, and the telemetry. */
export function joinReading(sequence: number, telemetry: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(8 + telemetry.length);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(sequence));
  bytes.set(telemetry, 8);
  return bytes;
}
