/**
 * Shares of a master key for a backup on paper (Shamir's secret sharing over GF(2^8)): any `threshold` of them
 * restore the key, and fewer reveal nothing about it. docs/formats.md specifies the bytes.
 */
import { createHash, randomBytes } from "node:crypto";
import { base32crockford } from "@scure/base";
import { combine, split } from "shamir-secret-sharing";
import { equalBytes, wipe } from "./bytes.ts";
import { invalidKey } from "./crypto-error.ts";
import { nameMasterKey } from "./sealing.ts";

/** A share, without what is secret about it. */
export interface KeyShare {
  /** Identifies the shares of one split, in hexadecimal. */
  readonly setId: string;
  /** How many shares restore the key. */
  readonly threshold: number;
  /** From 1. */
  readonly number: number;
  /** The first 12 digits of the key's ID. */
  readonly keyId: string;
  /** The share itself: 33 bytes. */
  readonly secret: Uint8Array;
}

export const [minThreshold, maxShares] = [2, 99];

const version = 1;
const [keyBytes, setIdBytes, fingerprintBytes, checksumBytes] = [32, 4, 6, 4];
/** Where each part begins: version, threshold, number, set ID, fingerprint of the key, share, checksum. */
const setIdAt = 3;
const fingerprintAt = setIdAt + setIdBytes;
const secretAt = fingerprintAt + fingerprintBytes;
const checksumAt = secretAt + keyBytes + 1;
const shareBytes = checksumAt + checksumBytes;

/** Base32 digits of a share. */
export const shareDigits = (shareBytes * 8) / 5;

/** 20 digits per line, in groups of 4. */
const lines = /.{20}/g;
const groups = /.{4}/g;

/** The shares of one split. */
interface KeySplit {
  /** In hexadecimal. */
  readonly setId: string;
  /** Each is four lines of Base32 (Crockford's alphabet, which has no I, L, O and U). */
  readonly shares: readonly string[];
}

/** Splits a master key into a number of shares, of which `threshold` restore it. */
export async function splitKey(masterKey: Uint8Array, count: number, threshold: number): Promise<KeySplit> {
  // The library refuses a Buffer.
  const secret = Uint8Array.from(masterKey);
  const secrets = await split(secret, count, threshold);
  try {
    const restored = await combine(secrets.slice(-threshold));
    const isSame = equalBytes(restored, secret);
    wipe(restored, secret);
    // Without this check, a fault would only show when the key is lost.
    if (!isSame) throw new Error("the shares do not restore the master key");
    const setId = randomBytes(setIdBytes);
    const fingerprint = Buffer.from(nameMasterKey(masterKey), "hex").subarray(0, fingerprintBytes);
    const shares = secrets.map((point, i) => {
      const body = Buffer.concat([Buffer.of(version, threshold, i + 1), setId, fingerprint, point]);
      const share = Buffer.concat([body, computeChecksum(body)]);
      const text = writeText(share);
      wipe(body, share);
      return text;
    });
    return { setId: setId.toString("hex"), shares };
  } finally {
    wipe(...secrets);
  }
}

function writeText(share: Uint8Array): string {
  const digits = base32crockford.encode(share);
  return (digits.match(lines) ?? []).map((line) => line.match(groups)?.join(" ")).join("\n");
}

function computeChecksum(body: Uint8Array): Buffer {
  return createHash("sha256").update("qsp master key share").update(body).digest().subarray(0, checksumBytes);
}

/**
 * Reads a share that a person may have typed: in upper or lower case, with O for 0 and I or L for 1, and with
 * any spaces and hyphens.
 *
 * @throws INVALID_KEY without quoting the share
 */
export function readShare(text: string): KeyShare {
  const digits = text.replaceAll(/[\s-]/g, "");
  const other = /[^0-9A-TV-Z]/i.exec(digits);
  if (other !== null)
    throw invalidKey(
      `character ${other.index + 1} is not a digit of a share, which are 0 to 9 and A to Z without U`,
    );
  if (digits.length !== shareDigits)
    throw invalidKey(`it has ${digits.length} characters; a share has ${shareDigits}, without spaces`);
  const share = Buffer.from(base32crockford.decode(digits));
  const body = share.subarray(0, checksumAt);
  if (!computeChecksum(body).equals(share.subarray(checksumAt)))
    throw invalidKey("its checksum does not match: compare each character with the paper");
  if (share[0] !== version)
    throw invalidKey(`it is of version ${share[0]}; this program reads version ${version}`);
  const [, threshold = 0, number = 0] = share;
  if (threshold < minThreshold)
    throw invalidKey(`its threshold is ${threshold}; a share needs at least ${minThreshold}`);
  if (number === 0) throw invalidKey("its number is 0; shares count from 1");
  return {
    setId: share.toString("hex", setIdAt, fingerprintAt),
    threshold,
    number,
    keyId: share.toString("hex", fingerprintAt, secretAt),
    secret: Uint8Array.from(share.subarray(secretAt, checksumAt)),
  };
}

/**
 * Restores a master key.
 *
 * @param shares at least as many as their threshold, of one set, each once: the caller has checked that
 * @returns the key, 32 bytes. The caller wipes it.
 * @throws INVALID_KEY if the key is not the one that the shares name
 */
export async function combineShares(shares: readonly KeyShare[]): Promise<Uint8Array> {
  const key = await combine(shares.map(({ secret }) => secret));
  if (shares.every(({ keyId }) => nameMasterKey(key).startsWith(keyId))) return key;
  wipe(key);
  throw invalidKey("the shares restore a different key from the one they name: one of them is forged");
}
