/**
 * Why a cryptographic call was rejected:
 *
 * - INVALID_KEY: key material is malformed, has the wrong length, belongs to a different
 *   algorithm, or is inconsistent. Detected on import, never on use.
 * - INVALID_ARGUMENT: any other input is out of range or has the wrong type.
 * - UNSUPPORTED: the algorithm does not have this form or operation.
 * - CLOSED: the provider was closed, or the key was erased.
 * - SEAL_BROKEN: a sealed secret does not open with this master key or for this record.
 * - UNWRAP_FAILED: a wrapped key does not open with this private key, info and aad.
 * - SELF_TEST_FAILED: the library computed a wrong result at startup.
 * - UNAVAILABLE: the native provider was requested but is not built or does not load.
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
 * The only error besides CryptoBusyError that `src/crypto` throws on purpose; any other error is a bug. The
 * message states the problem and the remedy, with sizes in bytes, and never contains key material.
 */
export class CryptoError extends Error {
  readonly code: CryptoErrorCode;

  constructor(code: CryptoErrorCode, message: string) {
    super(message);
    this.name = "CryptoError";
    this.code = code;
  }
}

/** Creates an INVALID_KEY error for the caller to throw. */
export function invalidKey(message: string): CryptoError {
  return new CryptoError("INVALID_KEY", message);
}

/** Creates an INVALID_ARGUMENT error for the caller to throw. */
export function invalidArgument(message: string): CryptoError {
  return new CryptoError("INVALID_ARGUMENT", message);
}

/**
 * Runs a reader and names its input in the error.
 *
 * @param name the input's name for the error
 */
export function explain<T>(name: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof CryptoError ? new CryptoError(error.code, `${name}: ${error.message}`) : error;
  }
}
