import { type Algorithm, algorithms, type SignatureAlgorithm } from "./algorithms.ts";
import { CryptoError, type CryptoErrorCode, invalidArgument } from "./crypto-error.ts";
import type { CheckedSignatureOptions } from "./engine.ts";
import type { SignatureOptions } from "./provider.ts";

/** Maximum context length, in bytes (FIPS 204, section 5.2; FIPS 205, section 10.2). */
const maxContextBytes = 255;

/** Rejects unknown parameter sets; JavaScript callers can pass any string. */
export function checkAlgorithm(algorithm: Algorithm): void {
  if (Object.hasOwn(algorithms, algorithm)) return;
  const known = Object.keys(algorithms).join(", ");
  throw invalidArgument(`unknown algorithm ${String(algorithm)}; known: ${known}`);
}

/** Rejects anything but a Uint8Array, in particular strings, which OpenSSL would read as UTF-8. */
export function checkBytes(name: string, value: unknown): void {
  if (value instanceof Uint8Array) return;
  throw invalidArgument(`${name} must be a Uint8Array, not ${typeName(value)}`);
}

export function checkLength(
  code: CryptoErrorCode,
  name: string,
  value: Uint8Array,
  expectedBytes: number,
): void {
  checkBytes(name, value);
  if (value.length === expectedBytes) return;
  throw new CryptoError(code, `${name} must have ${expectedBytes} bytes, not ${value.length}`);
}

/** Rejects key material unless it has exactly one of the forms. */
export function checkMaterial(material: object, ...forms: string[]): void {
  const given = Object.keys(material ?? {});
  if (given.length === 1 && given.every((form) => forms.includes(form))) return;
  throw invalidArgument(`key material must be exactly one of ${forms.join(", ")}`);
}

/**
 * Checks signing and verification options and fills in their defaults.
 *
 * @throws INVALID_ARGUMENT for an unknown option, an option that the algorithm does not support, or a context
 *   longer than 255 bytes
 */
export function checkSignatureOptions(
  algorithm: SignatureAlgorithm,
  options: SignatureOptions | undefined,
): CheckedSignatureOptions {
  if (options === undefined) return defaultOptions;
  checkOptionNames(options);
  const { context, ecdsaEncoding } = options;
  if (context !== undefined) checkContext(algorithm, context);
  if (ecdsaEncoding !== undefined) checkEcdsaEncoding(algorithm, ecdsaEncoding);
  return {
    context: context?.length === 0 ? undefined : context,
    ecdsaEncoding: ecdsaEncoding ?? defaultOptions.ecdsaEncoding,
  };
}

const defaultOptions: CheckedSignatureOptions = Object.freeze({ context: undefined, ecdsaEncoding: "der" });

/** Rejects unknown options: with a misspelled `context`, a call would silently sign without one. */
function checkOptionNames(options: SignatureOptions): void {
  if (typeof options !== "object" || options === null) {
    throw invalidArgument(`options must be an object, not ${typeName(options)}`);
  }
  const unknown = Object.keys(options).find((name) => name !== "context" && name !== "ecdsaEncoding");
  if (unknown === undefined) return;
  throw invalidArgument(`unknown option ${unknown}; known: context, ecdsaEncoding`);
}

function checkContext(algorithm: SignatureAlgorithm, context: Uint8Array): void {
  checkBytes("context", context);
  if (algorithm === "ECDSA-P256") throw invalidArgument(`${algorithm} does not support a context`);
  if (context.length > maxContextBytes) {
    throw invalidArgument(`context must have 0 to ${maxContextBytes} bytes, not ${context.length}`);
  }
}

function checkEcdsaEncoding(algorithm: SignatureAlgorithm, ecdsaEncoding: string): void {
  if (algorithm !== "ECDSA-P256") {
    throw invalidArgument(`ecdsaEncoding applies to ECDSA only; ${algorithm} has one encoding`);
  }
  if (ecdsaEncoding !== "der" && ecdsaEncoding !== "ieee-p1363") {
    throw invalidArgument(`ecdsaEncoding must be der or ieee-p1363, not ${ecdsaEncoding}`);
  }
}

function typeName(value: unknown): string {
  return value === null ? "null" : typeof value;
}
