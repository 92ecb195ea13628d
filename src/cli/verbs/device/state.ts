/** The device file (key, identity, next sequence number), and the signatures made with its key. */
import { deviceContexts, joinReading } from "../../../client/device-messages.ts";
import { withStateLock } from "../../files/lock.ts";
import { areTexts, readState, type StateKind, writeState } from "../../files/state.ts";
import { parseSecretKey, withProvider } from "../../keys/read-keys.ts";
import type { VerbInput } from "../../verb.ts";

export const defaultDeviceFile = "device.json";

/** The option that all device verbs share. */
export const deviceOption = {
  device: {
    value: "FILE",
    meaning: "File with the device's key; default: device.json",
    file: "updates",
    defaultPath: () => defaultDeviceFile,
  },
} as const;

/** The content of a device file (mode 0600). */
interface DeviceState {
  readonly url: string;
  readonly deviceId: string;
  /** ML-DSA-44, PKCS#8. */
  readonly secretKeyPem: string;
  /** The sequence number of the next reading; numbers may be skipped, but are never reused. */
  readonly nextSequence: number;
  /** Whether it signs under a separate context for each use; devices of older versions do not. */
  readonly signingContexts?: boolean | undefined;
  /** The token from the device's last authentication. */
  readonly token?: string | undefined;
  /** RFC 3339. */
  readonly tokenExpiresAt?: string | undefined;
}

export const deviceKind: StateKind<DeviceState> = {
  noun: "device",
  maker: "qsp device register",
  isState: ({ url, deviceId, secretKeyPem, nextSequence }) =>
    areTexts(url, deviceId, secretKeyPem) && Number.isSafeInteger(nextSequence),
};

/** An open device file. The device signs under separate contexts if it was registered that way. */
export interface OpenDevice {
  readonly path: string;
  readonly state: DeviceState;
  /** Signs a challenge of 32 bytes. */
  signChallenge(challenge: Uint8Array): Promise<Uint8Array<ArrayBuffer>>;
  /** Signs a reading with its sequence number. */
  signReading(sequence: number, telemetry: Uint8Array): Promise<Uint8Array<ArrayBuffer>>;
  /** Updates the state and the file, which keeps what other verbs have changed meanwhile. */
  keep(changes: Partial<DeviceState>): void;
  /**
   * Reserves sequence numbers. They are stored as used before anything is sent, so that none is sent twice.
   *
   * @returns the first number
   */
  takeSequences(count: number): number;
}

/**
 * Opens the device file of --device and runs a function with it.
 *
 * @throws CliError, even for a device of a different server
 */
export function withDevice<T>(
  { files, server }: VerbInput,
  use: (device: OpenDevice) => Promise<T>,
): Promise<T> {
  const path = files.need("device");
  // Another verb may have changed the file since.
  const read = (): DeviceState => readState(path, server.url, deviceKind);
  const update = (change: (found: DeviceState) => Partial<DeviceState>): void =>
    withStateLock(() => {
      const found = read();
      state = { ...found, ...change(found) };
      writeState(path, state);
    });
  let state = read();
  return withProvider(async (provider) => {
    const secretKey = await parseSecretKey(provider, state.secretKeyPem, path);
    const sign = async (message: Uint8Array, context: Uint8Array) =>
      Uint8Array.from(await provider.sign(secretKey, message, state.signingContexts ? { context } : {}));
    return use({
      path,
      get state() {
        return state;
      },
      signChallenge: (challenge) => sign(challenge, deviceContexts.challenge),
      signReading: (sequence, telemetry) =>
        sign(joinReading(sequence, telemetry), deviceContexts.numberedReading),
      keep: (changes) => update(() => changes),
      takeSequences(count) {
        update(({ nextSequence }) => ({ nextSequence: nextSequence + count }));
        return state.nextSequence - count;
      },
    });
  });
}
