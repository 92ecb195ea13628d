import { CryptoError, type CryptoErrorCode } from "../../src/crypto/crypto-error.ts";

/** The code with which an attempt was refused; undefined when it succeeded. Other errors pass through. */
export async function refusal(attempt: () => unknown): Promise<CryptoErrorCode | undefined> {
  try {
    await attempt();
    return undefined;
  } catch (error) {
    if (error instanceof CryptoError) return error.code;
    throw error;
  }
}

/** A copy with one bit changed, by default the lowest of the byte. */
export function flipBit(bytes: Uint8Array, byteIndex: number, mask = 1): Uint8Array {
  const copy = Uint8Array.from(bytes);
  return copy.with(byteIndex, (copy[byteIndex] ?? 0) ^ mask);
}
