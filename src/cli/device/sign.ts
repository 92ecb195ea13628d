/** What a device signs, and under which context (proto/iot, IotService; FIPS 204, section 5.2). */
import { deviceContexts, joinReading } from "../../client/device-messages.ts";
import type { CryptoProvider, SecretKey } from "../../crypto/provider.ts";
import type { DeviceState } from "./state.ts";

/** A device's key, and whether it signs with contexts. */
export interface DeviceSigner {
  readonly provider: CryptoProvider;
  readonly secretKey: SecretKey;
  readonly state: Pick<DeviceState, "signingContexts">;
}

/** Signs the 32 bytes of a challenge. */
export function signChallenge(signer: DeviceSigner, challenge: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  return signAs(signer, "challenge", challenge);
}

/** Signs a reading with its number: 8 bytes, big-endian, followed by the telemetry. */
export function signNumberedReading(
  signer: DeviceSigner,
  sequence: number,
  telemetry: Uint8Array,
): Promise<Uint8Array<ArrayBuffer>> {
  return signAs(signer, "numberedReading", joinReading(sequence, telemetry));
}

async function signAs(
  { provider, secretKey, state }: DeviceSigner,
  use: keyof typeof deviceContexts,
  message: Uint8Array,
): Promise<Uint8Array<ArrayBuffer>> {
  const options = state.signingContexts === true ? { context: deviceContexts[use] } : {};
  return Uint8Array.from(await provider.sign(secretKey, message, options));
}
