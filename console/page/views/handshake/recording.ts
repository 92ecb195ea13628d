/** Recorded connections: TLS records of both directions, and the key log that opens them. */
import { toBase64 } from "../../../../src/client/base64.ts";
import { fromBase64Url } from "../../values.ts";
import { toNumber } from "./field.ts";

export interface WireRecord {
  readonly fromClient: boolean;
  /** A TLS record with its header (RFC 8446, section 5.1). */
  readonly bytes: Uint8Array<ArrayBuffer>;
}

export interface Recording {
  readonly records: readonly WireRecord[];
  /** In the format of NSS's SSLKEYLOGFILE (RFC 9850). */
  readonly keyLog: string;
}

/** A sentence about a file that is not a recording. */
export class RecordingError extends Error {}

/** Limits for files, which may come from anywhere. */
export const maxFileBytes = 1_000_000;
const maxRecordedBytes = 256 * 1024;
const maxRecords = 200;
const maxKeyLogLength = 64 * 1024;
/** RFC 8446, section 5.2: header, content, and 256 bytes for the protection. */
const maxRecordBytes = 5 + 2 ** 14 + 256;

const form =
  'Expected JSON: {"records": [{"fromClient": true, "bytes": "FgMB…"}], "keyLog": "CLIENT_HANDSHAKE_TRAFFIC_SECRET …"}.';

/**
 * Reads a file, or the answer to RecordHandshake over REST.
 *
 * @throws RecordingError
 */
export function readRecording(text: string): Recording {
  if (text.length > maxFileBytes) throw new RecordingError(`The file has more than ${maxFileBytes} bytes.`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new RecordingError(`The file is not JSON. ${form}`);
  }
  const { records, keyLog } = (value ?? {}) as { readonly records?: unknown; readonly keyLog?: unknown };
  if (!Array.isArray(records) || records.length === 0)
    throw new RecordingError(`"records" is not a list with records. ${form}`);
  if (typeof keyLog !== "string" || keyLog.length > maxKeyLogLength)
    throw new RecordingError(`"keyLog" is not a text of at most ${maxKeyLogLength} characters. ${form}`);
  return { records: splitRecords(records.map(readChunk)), keyLog };
}

export function writeRecording({ records, keyLog }: Recording): string {
  const written = records.map(({ fromClient, bytes }) => ({ fromClient, bytes: toBase64(bytes) }));
  return `${JSON.stringify({ records: written, keyLog }, undefined, 1)}\n`;
}

function readChunk(value: unknown, at: number): WireRecord {
  const { fromClient = false, bytes } = (value ?? {}) as {
    readonly fromClient?: unknown;
    readonly bytes?: unknown;
  };
  if (typeof bytes !== "string" || typeof fromClient !== "boolean")
    throw new RecordingError(`records[${at}] is not a direction with bytes. ${form}`);
  try {
    return { fromClient, bytes: fromBase64Url(bytes) };
  } catch {
    throw new RecordingError(`records[${at}].bytes is not base64. ${form}`);
  }
}

/**
 * Splits what each end wrote into records: a program may write several at once, or part of one. A record
 * belongs where its first byte is.
 *
 * @throws RecordingError if a limit is exceeded, or the bytes are not TLS
 */
export function splitRecords(chunks: readonly WireRecord[]): WireRecord[] {
  const total = chunks.reduce((sum, { bytes }) => sum + bytes.length, 0);
  if (total > maxRecordedBytes)
    throw new RecordingError(
      `The recording has ${total} bytes; this page takes apart ${maxRecordedBytes}. End it after the handshake.`,
    );
  const split: { fromClient: boolean; order: number; bytes: Uint8Array<ArrayBuffer> }[] = [];
  for (const fromClient of [true, false]) {
    const own = chunks.flatMap((chunk, order) =>
      chunk.fromClient === fromClient ? [{ ...chunk, order }] : [],
    );
    const stream = new Uint8Array(own.reduce((sum, { bytes }) => sum + bytes.length, 0));
    const starts: { at: number; order: number }[] = [];
    let end = 0;
    for (const { bytes, order } of own) {
      starts.push({ at: end, order });
      stream.set(bytes, end);
      end += bytes.length;
    }
    for (let at = 0; at < end; ) {
      const size = 5 + toNumber(stream.subarray(at + 3, at + 5));
      const order = starts.findLast((start) => start.at <= at)?.order ?? 0;
      split.push({ fromClient, order, bytes: stream.slice(at, at + size) });
      if (size > maxRecordBytes || !isContentType(stream[at]))
        throw new RecordingError(
          `The ${fromClient ? "client" : "server"}'s bytes are not TLS records: at offset ${at}, a record would have type ${stream[at]} and ${size - 5} bytes.`,
        );
      if (split.length > maxRecords)
        throw new RecordingError(
          `The recording has more than ${maxRecords} records, too many to take apart. End it after the handshake.`,
        );
      at += size;
    }
  }
  return split
    .sort((one, other) => one.order - other.order)
    .map(({ fromClient, bytes }) => ({ fromClient, bytes }));
}

function isContentType(type: number | undefined): boolean {
  return type !== undefined && type >= 20 && type <= 24;
}
