/** Reads request bodies: limits their size and time, decompresses them and checks their media type. */
import { Readable } from "node:stream";
import { promisify } from "node:util";
import { createGunzip, gunzip } from "node:zlib";
import { ConnectError } from "@connectrpc/connect";
import { createInterrupt } from "../calls/interrupt.ts";
import { requestTooSlow } from "../calls/timeout.ts";
import { excerpt } from "../errors/shorten.ts";
import { bodyTooLarge, refuse } from "../errors.ts";
import type { ExpansionBudget } from "../message-limits/expansion.ts";
import type { MessageLimits, StructureLimits } from "../message-limits/structure-limits.ts";

const gunzipAsync = promisify(gunzip);

export interface BodyLimits {
  /** Maximum bytes of a whole body or stream message, before and after decompression. */
  readonly maxBytes: number;
  /** Milliseconds from the start of the call to the last byte of a body that is not a stream. */
  readonly maxReceiveMs: number;
  /** Limits on the structure of each message. */
  readonly structure: StructureLimits;
}

/** The limits of a stream and of each of its messages. */
export type StreamLimits = BodyLimits & MessageLimits;

/** A body being received. */
export interface IncomingBody {
  readonly chunks: AsyncIterable<Uint8Array>;
  readonly headers: Headers;
  /** Aborts when the caller disconnects or its deadline passes. */
  readonly signal: AbortSignal;
  /** Counts bytes held until the call ends or a stream message is complete. */
  readonly meter?: ByteMeter | undefined;
}

/** Counts bytes held in memory, and refuses bytes beyond its limits. */
export interface ByteMeter {
  /**
   * Counts a piece of the body.
   *
   * @returns its cost
   * @throws a refusal if it exceeds a limit
   */
  charge(bytes: number): number;
  /** Refunds the cost of pieces. */
  refund(cost: number): void;
  /** Waits until a message of this size may be parsed; undefined if it may be parsed now. */
  takeTurn(bytes: number): Promise<void> | undefined;
}

/**
 * Reads a whole body and waits for its turn to be parsed.
 *
 * @throws BODY_TOO_LARGE, REQUEST_TOO_SLOW, ENCODING_UNSUPPORTED, ENCODING_INVALID, or the signal's abort
 *   reason
 */
export async function readBody(body: IncomingBody, limits: BodyLimits): Promise<Uint8Array> {
  const compressed = isGzip(body.headers);
  const announced = Number(body.headers.get("content-length") ?? 0);
  if (announced > limits.maxBytes) throw bodyTooLarge(limits.maxBytes);
  const bytes = await collect(body, limits);
  const plain = compressed && bytes.length > 0 ? await decompress(bytes, limits.maxBytes) : bytes;
  if (plain !== bytes) body.meter?.charge(plain.length);
  await body.meter?.takeTurn(plain.length);
  return plain;
}

async function collect(body: IncomingBody, limits: BodyLimits): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of withinTime(body, limits.maxReceiveMs)) {
    size += chunk.length;
    if (size > limits.maxBytes) throw bodyTooLarge(limits.maxBytes);
    chunks.push(chunk);
  }
  return chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks, size);
}

/**
 * Passes chunks on until the signal aborts or `maxReceiveMs`, if set, has passed.
 *
 * @throws REQUEST_TOO_SLOW, CALL_CANCELED, or the signal's abort reason
 */
export async function* withinTime(body: IncomingBody, maxReceiveMs?: number): AsyncGenerator<Uint8Array> {
  const { race, interrupt } = createInterrupt();
  const onAbort = (): void => interrupt(body.signal.reason);
  if (body.signal.aborted) onAbort();
  body.signal.addEventListener("abort", onAbort, { once: true });
  const timer =
    maxReceiveMs === undefined
      ? undefined
      : setTimeout(() => interrupt(requestTooSlow(maxReceiveMs)), maxReceiveMs);
  const iterator = body.chunks[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await race(iterator.next().catch(explainBreak));
      if (next.done === true) return;
      // A body that is not a stream is held until the call ends.
      if (maxReceiveMs !== undefined) body.meter?.charge(next.value.length);
      yield next.value;
    }
  } finally {
    clearTimeout(timer);
    body.signal.removeEventListener("abort", onAbort);
  }
}

/** If Node fails while a body arrives, the connection has been closed. */
function explainBreak(thrown: unknown): never {
  if (thrown instanceof ConnectError) throw thrown;
  throw refuse("CALL_CANCELED", "the caller disconnected before its request was complete");
}

/**
 * Passes on the chunks of a stream as they arrive, decompressed. The caller must limit each message; only the
 * expansion budget limits the whole stream.
 *
 * @throws ENCODING_UNSUPPORTED, ENCODING_INVALID, BODY_TOO_LARGE
 */
export async function* readChunks(body: IncomingBody, budget: ExpansionBudget): AsyncGenerator<Uint8Array> {
  if (!isGzip(body.headers)) return yield* withinTime(body);
  const source = Readable.from(counted(withinTime(body), budget), { objectMode: false });
  const gunzip = createGunzip();
  source.on("error", (error) => gunzip.destroy(error));
  try {
    for await (const chunk of source.pipe(gunzip)) {
      budget.addExpanded(chunk.length);
      yield chunk;
    }
  } catch (error) {
    // A zlib error has an errno. An error from the source is rethrown unchanged.
    throw error instanceof Error && "errno" in error ? invalidGzip() : error;
  }
}

async function* counted(
  chunks: AsyncIterable<Uint8Array>,
  budget: ExpansionBudget,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    budget.addCompressed(chunk.length);
    yield chunk;
  }
}

/**
 * Returns whether a body is compressed.
 *
 * @throws ENCODING_UNSUPPORTED for any coding except gzip
 */
export function isGzip(headers: Headers): boolean {
  const encoding = (headers.get("content-encoding") ?? "identity").trim().toLowerCase();
  if (encoding === "identity" || encoding === "") return false;
  if (encoding === "gzip" || encoding === "x-gzip") return true;
  const error = refuse(
    "ENCODING_UNSUPPORTED",
    `content-encoding "${excerpt(encoding)}" is not supported; send gzip or no content-encoding`,
    { contentEncoding: encoding },
  );
  error.metadata.set("accept-encoding", "gzip");
  throw error;
}

async function decompress(bytes: Uint8Array, maxBytes: number): Promise<Uint8Array> {
  try {
    return await gunzipAsync(bytes, { maxOutputLength: maxBytes });
  } catch (error) {
    if (error instanceof RangeError) throw bodyTooLarge(maxBytes);
    throw invalidGzip();
  }
}

function invalidGzip(): Error {
  return refuse("ENCODING_INVALID", "the body is not valid gzip data, as content-encoding announces");
}

/**
 * Refuses a body whose media type the call does not accept. A body without a content-type gets the first
 * type.
 *
 * @param accepted the media types that the call accepts
 * @throws MEDIA_TYPE_UNSUPPORTED
 */
export function requireMediaType(headers: Headers, accepted: readonly string[]): string {
  const header = headers.get("content-type");
  if (header === null) return accepted[0] as string;
  // RFC 9110, section 8.3.1.
  const [name = "", ...parameters] = header
    .toLowerCase()
    .split(";")
    .map((part) => part.trim());
  const charset = parameters
    .find((parameter) => parameter.startsWith("charset="))
    ?.replace(/^charset=|"/g, "");
  const isUtf8 = charset === undefined || charset === "utf-8" || charset === "us-ascii";
  if (accepted.includes(name) && isUtf8) return name;
  const given = charset === undefined ? name : `${name} in ${charset}`;
  const error = refuse(
    "MEDIA_TYPE_UNSUPPORTED",
    `the body is ${given}; send content-type: ${accepted.join(" or ")}`,
    { contentType: given },
  );
  error.metadata.set("accept", accepted.join(", "));
  throw error;
}
