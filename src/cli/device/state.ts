/** The file of a device: its key, its identity and its next sequence number. */
import { rmSync } from "node:fs";
import { areTexts, readState, type StateKind, writeState } from "../state-file.ts";
import { createFile } from "../write-file.ts";

/** The default path of a device's file. */
export const defaultDeviceFile = "device.json";

/** The option of all verbs of a device. */
export const deviceOption = {
  device: {
    value: "FILE",
    meaning: "File with the key of the device; default: device.json",
    file: "updates",
    defaultPath: () => defaultDeviceFile,
  },
} as const;

/** The content of a device's file, of mode 0600. */
export interface DeviceState {
  readonly url: string;
  readonly deviceId: string;
  /** ML-DSA-44, PKCS#8. */
  readonly secretKeyPem: string;
  /** The number of the next reading; numbers may be skipped, but are never reused. */
  readonly nextSequence: number;
  /** Whether it signs with a context for each use; devices of older versions do not. */
  readonly signingContexts?: boolean | undefined;
  /** The token from the device's last authentication. */
  readonly token?: string | undefined;
  /** RFC 3339. */
  readonly tokenExpiresAt?: string | undefined;
}

/** Creates a new file before there is a key that could be lost. @returns functions that fill or remove it */
export function reserveDevice(path: string): { keep(state: DeviceState): void; drop(): void } {
  createFile(path, "", "private");
  return { keep: (state) => writeDevice(path, state), drop: () => rmSync(path) };
}

const kind: StateKind<DeviceState> = {
  noun: "device",
  maker: "qsp device register",
  isState: ({ url, deviceId, secretKeyPem, nextSequence }) =>
    areTexts(url, deviceId, secretKeyPem) && Number.isSafeInteger(nextSequence),
};

/** Reads a device's file. @throws CliError, also for a device of another server */
export function readDevice(path: string, url: string): DeviceState {
  return readState(path, url, kind);
}

/** Replaces a device's state. */
export function writeDevice(path: string, state: DeviceState): void {
  writeState(path, state);
}

/** Reserves numbers for readings. They are marked as used before anything is sent, so that none is sent twice. */
export function takeSequences(path: string, state: DeviceState, count: number): DeviceState {
  const next = { ...state, nextSequence: state.nextSequence + count };
  writeDevice(path, next);
  return next;
}

/** Finds the device's own token, if it has a valid one. */
export function findToken({ token, tokenExpiresAt }: DeviceState): string | undefined {
  return tokenExpiresAt !== undefined && new Date(tokenExpiresAt) > new Date() ? token : undefined;
}
