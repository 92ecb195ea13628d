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
