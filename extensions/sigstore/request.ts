/**
 * Requests of sigstore's KMS plugin protocol, version v1 (pkg/signature/kms/cliplugin/common in
 * sigstore/sigstore).
 */

import { usageError } from "../../src/cli/exit-codes.ts";
import { type JsonObject, type JsonValue, parseJsonObject } from "../../src/crypto/strict-json.ts";
import { parseRfc3339 } from "../../src/rfc3339.ts";

/** One call of a method. */
export interface SigstoreRequest {
  readonly method: string;
  /** The part after qsp://. */
  readonly keyReference: string;
  /** The arguments of the method. */
  readonly args: JsonObject;
  /** Hash function number, as in Go's crypto.Hash; 0 for none. */
  readonly hashFunction: number;
  /** The message's hash; undefined if the caller has not computed it. */
  readonly digest: Uint8Array | undefined;
  /** When the caller stops waiting; undefined for no deadline. */
  readonly deadline: Date | undefined;
}

const protocolVersion = "v1";
/** A request has about 30 members. */
const maxJsonTokens = 500;

/**
 * Parses the two arguments that sigstore passes to a plugin.
 *
 * @throws CliError
 */
export function readSigstoreRequest(version: string, text: string): SigstoreRequest {
  const request = parseJsonObject(Buffer.from(text), maxJsonTokens);
  if (request === undefined)
    throw usageError("the second argument must be a JSON object without duplicate members");
  const init = readObject(request, "initOptions");
  for (const found of [version, init.protocolVersion])
    if (found !== protocolVersion)
      throw usageError(
        `version ${JSON.stringify(found)} of the protocol is not supported; this plugin implements ${protocolVersion}`,
      );
  const method = readText(request, "methodName");
  const args = readObject(request, method);
  const options = readObject(
    args,
    `${method === "signMessage" ? "sign" : method === "publicKey" ? "publicKey" : "verify"}Options`,
  );
  const messageOptions = readObject(options, "messageOptions");
  const rpcOptions = [init, options].map((from) => readObject(from, "rpcOptions"));
  for (const { keyVersion } of rpcOptions)
    if (keyVersion !== undefined && keyVersion !== null && keyVersion !== "")
      throw usageError("keyVersion is not supported; use a key such as qsp://name/release/2");
  const { digest } = messageOptions;
  return {
    method,
    keyReference: readText(init, "keyResourceID").replace(/^qsp:\/\//, ""),
    args,
    hashFunction: readNumber(messageOptions.hashFunc ?? null) || readNumber(init.hashFunc ?? null),
    digest: digest === undefined || digest === null ? undefined : readBytes("digest", digest),
    deadline: findDeadline([init, args, ...rpcOptions]),
  };
}

/**
 * Decodes base64, the form in which Go writes bytes in JSON.
 *
 * @throws CliError
 */
export function readBytes(name: string, value: JsonValue | undefined): Uint8Array {
  try {
    if (typeof value === "string") return Uint8Array.fromBase64(value, { lastChunkHandling: "strict" });
  } catch {
    // Reported below.
  }
  throw usageError(`${name} is not base64`);
}

/** Reads a member. An absent one is {}, because Go omits empty values. */
function readObject(from: JsonObject, name: string): JsonObject {
  const value = Object.hasOwn(from, name) ? from[name] : undefined;
  if (value === undefined || value === null) return {};
  if (typeof value === "object" && !Array.isArray(value)) return value;
  throw usageError(`${name} is not an object`);
}

function readText(from: JsonObject, name: string): string {
  const value = from[name];
  if (typeof value === "string") return value;
  throw usageError(`${name} is not a string`);
}

function readNumber(value: JsonValue): number {
  if (value === null) return 0;
  if (typeof value === "number" && Number.isSafeInteger(value)) return value;
  throw usageError("hashFunc is not a whole number");
}

/** Returns the earliest deadline (RFC 3339). */
function findDeadline(holders: readonly JsonObject[]): Date | undefined {
  const times = holders.flatMap(({ ctxDeadline }) => {
    if (ctxDeadline === undefined || ctxDeadline === null) return [];
    const time = typeof ctxDeadline === "string" ? parseRfc3339(ctxDeadline) : undefined;
    if (time === undefined) throw usageError("ctxDeadline is not an RFC 3339 time");
    return [time.getTime()];
  });
  return times.length === 0 ? undefined : new Date(Math.min(...times));
}
