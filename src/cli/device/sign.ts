/** What a device signs with its key (proto/iot, IotService; FIPS 204, section 5.2). */
import { deviceContexts, joinReading } from "../../client/device-messages.ts";
import type { CryptoProvider } from "../../crypto/provider.ts";
import { parseSecretKey, withProvider } from "../pem-keys.ts";
import type { DeviceState } from "./state.ts";

/** A device's key, which signs with a context for each use if the device registered so. */
export interface DeviceSigner {
  /** Signs the 32 bytes of a challenge. */
  signChallenge(challenge: Uint8Array): Promise<Uint8Array<ArrayBuffer>>;
  /** Signs a reading with its number. */
  signReading(sequence: number, telemetry: Uint8Array): Promise<Uint8Array<ArrayBuffer>>;
}

/** Lends the signer of a device to a function. @param path names the device's file in an error */
export function withSigner<T>(
  path: string,
  { secretKeyPem, signingContexts = false }: DeviceState,
  use: (signer: DeviceSigner) => Promise<T>,
): Promise<T> {
  return withProvider(async (provider: CryptoProvider) => {
    const secretKey = await parseSecretKey(provider, secretKeyPem, path);
    const sign = async (message: Uint8Array, context: Uint8Array) =>
      Uint8Array.from(await provider.sign(secretKey, message, signingContexts ? { context } : {}));
    return use({
      signChallenge: (challenge) => sign(challenge, deviceContexts.challenge),
      signReading: (sequence, telemetry) =>
        sign(joinReading(sequence, telemetry), deviceContexts.numberedReading),
    });
  });
}
