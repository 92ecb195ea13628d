import { CryptoError, type CryptoErrorCode } from "../../src/crypto/crypto-error.ts";

/**
 * Returns the code with which an attempt was rejected; undefined if it succeeded. Other errors are rethrown.
 */
export async function refusal(attempt: () => unknown): Promise<CryptoErrorCode | undefined> {
  try {
    await attempt();
    return undefined;
  } catch (error) {
    if (error instanceof CryptoError) return error.code;
    throw error;
  }
}
