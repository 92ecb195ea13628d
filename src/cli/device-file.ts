/** What a device keeps: its key, who it is, and how far it counted. */
import { rmSync } from "node:fs";
import type { CryptoProvider, SecretKey } from "../crypto/provider.ts";
import { createFile } from "./files.ts";
import { parseSecretKey } from "./pem-keys.ts";
import { areTexts, readState, type StateKind, writeState } from "./state-file.ts";

/** The option of all verbs of a device. */
export const deviceOption = {
  device: { value: "FILE", meaning: "Is where the device keeps its key; else device.json", offers: "files" },
} as const;

/** Where a device is kept if nobody says. */
export const defaultDeviceFile = "device.json";

/** The content of a device's file, of mode 0600. */
export interface DeviceState {
  readonly url: string;
  readonly deviceId: string;
  /** ML-DSA-44, PKCS#8. */
  readonly secretKeyPem: string;
  /** The number of the next reading; numbers may be left out, and are never used twice. */
  readonly nextSequence: number;
  /** Whether it signs with a context for each use; devices of older versions do not. */
  readonly signingContexts?: boolean | undefined;
  /** What the device got by authenticating. */
  readonly token?: string | undefined;
  /** RFC 3339. */
  readonly tokenExpiresAt?: string | undefined;
}

/** Makes a new file, before there is anything that could be lost. @returns what puts a device into it */
export function reserveDevice(path: string): { keep(state: DeviceState): void; drop(): void } {
  createFile(path, "", 0o600);
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

/** Puts a device's new state in place of the old one. */
export function writeDevice(path: string, state: DeviceState): void {
  writeState(path, state);
}

/** Takes numbers for readings: they are used up before anything is sent, so that none goes out twice. */
export function takeSequences(path: string, state: DeviceState, count: number): DeviceState {
  const next = { ...state, nextSequence: state.nextSequence + count };
  writeDevice(path, next);
  return next;
}

/** The device's own token, if it has one that is valid. */
export function findToken({ token, tokenExpiresAt }: DeviceState): string | undefined {
  return tokenExpiresAt !== undefined && new Date(tokenExpiresAt) > new Date() ? token : undefined;
}

/** The device's key. */
export function importDeviceKey(
  provider: CryptoProvider,
  path: string,
  state: DeviceState,
): Promise<SecretKey> {
  return parseSecretKey(provider, state.secretKeyPem, path);
}
