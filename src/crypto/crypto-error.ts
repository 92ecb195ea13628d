/**
 * Why a cryptographic call was refused:
 *
 * - INVALID_KEY: key material that is malformed, of the wrong length, of another
 *   algorithm, or contradicts itself. Found at import, never at use.
 * - INVALID_ARGUMENT: any other input out of its range or of the wrong type.
 * - UNSUPPORTED: the algorithm has no such form or operation.
 * - CLOSED: the provider was closed, or the key erased.
 * - SEAL_BROKEN: a sealed secret does not open under this master key, or for this record.
 * - UNWRAP_FAILED: a wrapped key does not open with this private key, info and aad.
 * - SELF_TEST_FAILED: the library gave a wrong answer at start.
 * - UNAVAILABLE: the native provider was asked for, and is not built or does not load.
 */
export type CryptoErrorCode =
  | "INVALID_KEY"
  | "INVALID_ARGUMENT"
  | "UNSUPPORTED"
  | "CLOSED"
  | "SEAL_BROKEN"
  | "UNWRAP_FAILED"
  | "SELF_TEST_FAILED"
  | "UNAVAILABLE";

/**
 * The only error besides CryptoBusyError that `src/crypto` throws on purpose. The message says what was wrong, with
 * sizes in bytes, and what would be right. It never contains key material. Any other error that escapes is a bug.
 */
export class CryptoError extends Error {
  readonly code: CryptoErrorCode;

  constructor(code: CryptoErrorCode, message: string) {
    super(message);
    this.name = "CryptoError";
    this.code = code;
  }
}

/** The error INVALID_KEY; the caller throws it. */
export function invalidKey(message: string): CryptoError {
  return new CryptoError("INVALID_KEY", message);
}

/** The error INVALID_ARGUMENT; the caller throws it. */
export function invalidArgument(message: string): CryptoError {
  return new CryptoError("INVALID_ARGUMENT", message);
}
