/** Opens a recording's records and takes them apart: every byte of every record is part of a named field. */
import { toHex } from "../../values.ts";
import * as codes from "./code-points.ts";
import { cutFields, type Field, FieldReader } from "./field.ts";
import { type ReadMessage, readMessage } from "./messages.ts";
import {
  deriveKeys,
  findSuite,
  hasCipher,
  openRecord,
  readSecrets,
  type SecretLabel,
  type Secrets,
  type Suite,
  type TrafficKeys,
  tagBytes,
  updateKeys,
} from "./protection.ts";
import type { Recording, WireRecord } from "./recording.ts";

/** How a record is protected. */
interface Protection {
  readonly keys: TrafficKeys;
  readonly sequence: number;
  /** The key log's name for the secret. */
  readonly label: SecretLabel;
}

/** A record, opened if it can be. */
export interface OpenRecord extends WireRecord {
  readonly protection?: Protection | undefined;
  /** The record with its plaintext in place of the ciphertext; undefined if it is not protected or does not open. */
  readonly plain?: Uint8Array<ArrayBuffer> | undefined;
}

/** A piece of a handshake message in a record. */
interface Piece {
  readonly record: number;
  /** Offset in the record. */
  readonly at: number;
  readonly size: number;
}

/** A handshake message, joined from its pieces. */
export interface Message extends ReadMessage {
  readonly fromClient: boolean;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly pieces: readonly Piece[];
  /** Whether bytes are missing at its end. */
  readonly isCut: boolean;
}

export interface Opened {
  readonly records: readonly OpenRecord[];
  readonly secrets: Secrets;
  readonly suite?: Suite | undefined;
  /** Why records stay closed, in a sentence. */
  readonly obstacle?: string | undefined;
}

export interface DissectedRecord extends OpenRecord {
  /** The whole record as a tree. */
  readonly field: Field;
  /** What the record carries: "ServerHello". */
  readonly title: string;
}

export interface Dissection {
  readonly records: readonly DissectedRecord[];
  readonly messages: readonly Message[];
}

/** The bytes that a record carries: type, and place in the record. */
function findContent({
  bytes,
  plain,
  protection,
}: OpenRecord): { type: number; start: number; end: number } | undefined {
  if (protection === undefined) return { type: bytes[0] ?? 0, start: 5, end: bytes.length };
  if (plain === undefined) return undefined;
  // RFC 8446, section 5.4: the type is the last byte that is not zero.
  let end = plain.length - tagBytes - 1;
  while (end > 5 && plain[end] === 0) end -= 1;
  return { type: plain[end] ?? 0, start: 5, end: Math.max(end, 5) };
}

/** Joins one direction's handshake messages (RFC 8446, section 5.1). */
function createJoiner(fromClient: boolean) {
  let pending: number[] = [];
  let pieces: Piece[] = [];
  const cut = (size: number, isCut: boolean): Message => {
    const bytes = Uint8Array.from(pending.slice(0, size));
    const own: Piece[] = [];
    const later: Piece[] = [];
    let left = size;
    for (const piece of pieces) {
      const used = Math.min(left, piece.size);
      left -= used;
      if (used > 0) own.push({ ...piece, size: used });
      if (used < piece.size) later.push({ ...piece, at: piece.at + used, size: piece.size - used });
    }
    pending = pending.slice(size);
    pieces = later;
    return { ...readMessage(bytes), fromClient, bytes, pieces: own, isCut };
  };
  return {
    add(record: number, content: Uint8Array, at: number): Message[] {
      if (content.length > 0) pieces.push({ record, at, size: content.length });
      for (const byte of content) pending.push(byte);
      const messages: Message[] = [];
      for (;;) {
        const [, high = 0, middle = 0, low = 0] = pending;
        const size = 4 + high * 65536 + middle * 256 + low;
        if (pending.length < 4 || size > pending.length) return messages;
        messages.push(cut(size, false));
      }
    },
    end: (): Message[] => (pending.length === 0 ? [] : [cut(pending.length, true)]),
  };
}

/** Derives the keys and opens the records. Never throws. */
export async function openRecords({ records, keyLog }: Recording): Promise<Opened> {
  const opened: OpenRecord[] = [];
  const joiners = { client: createJoiner(true), server: createJoiner(false) };
  const write: { client?: Omit<Protection, "sequence">; server?: Omit<Protection, "sequence"> } = {};
  const sequences = { client: 0, server: 0 };
  let secrets: Secrets = new Map();
  let suite: Suite | undefined;
  const hasHello = records.some(({ bytes, fromClient }) => fromClient && bytes[0] === 22);
  let obstacle = hasHello ? undefined : "The recording does not begin with a ClientHello.";
  let hasEarlyData = false;

  const change = async (end: "client" | "server", label: SecretLabel): Promise<void> => {
    const secret = secrets.get(label);
    delete write[end];
    sequences[end] = 0;
    if (suite === undefined) return;
    if (secret === undefined || secret.length !== suite.hashBytes) {
      obstacle ??= `The key log has no ${label} for this connection.`;
      return;
    }
    const keys = await deriveKeys(suite, secret);
    if (await hasCipher(keys)) write[end] = { keys, label };
    else
      obstacle ??= `Your browser's Web Cryptography does not have ${suite.aead}, so the records stay closed.`;
  };

  for (const [index, record] of records.entries()) {
    const end = record.fromClient ? "client" : "server";
    const state = write[end];
    let current: OpenRecord = record;
    if (record.bytes[0] === 23 && state !== undefined) {
      const protection = { ...state, sequence: sequences[end] };
      current = await open({ ...record, protection });
      if (current.plain === undefined)
        obstacle ??= `Record ${index + 1} does not open with the key log's secret: the recording is damaged or incomplete.`;
      sequences[end] += 1;
    }
    opened.push(current);
    const content = findContent(current);
    if (content?.type !== 22) continue;
    const bytes = (current.plain ?? current.bytes).subarray(content.start, content.end);
    for (const { name, facts } of joiners[end].add(index, bytes, content.start)) {
      if (name === "ClientHello") {
        secrets = readSecrets(keyLog, facts.random);
        hasEarlyData = facts.extensions.includes(42);
      } else if (name === "ServerHello") {
        const [version] = facts.versions;
        const [codePoint] = facts.cipherSuites;
        suite = version === 0x0304 ? findSuite(codePoint) : undefined;
        if (version !== 0x0304)
          obstacle ??= `This connection uses ${codes.showVersion(version ?? 0)}; this page opens records of TLS 1.3.`;
        else if (suite === undefined)
          obstacle ??= `Browsers cannot compute ${codes.nameCipherSuite(codePoint ?? 0)}, so the records stay closed.`;
        await change("server", "SERVER_HANDSHAKE_TRAFFIC_SECRET");
        // After early data (section 4.2.10), the client's handshake keys begin at EndOfEarlyData.
        if (hasEarlyData) obstacle ??= "The client sent early data, which this page does not open.";
        else await change("client", "CLIENT_HANDSHAKE_TRAFFIC_SECRET");
      } else if (name === "Finished")
        await change(end, record.fromClient ? "CLIENT_TRAFFIC_SECRET_0" : "SERVER_TRAFFIC_SECRET_0");
      else if (name === "KeyUpdate" && state !== undefined) {
        write[end] = { ...state, keys: await updateKeys(state.keys) };
        sequences[end] = 0;
      }
    }
  }
  return { records: opened, secrets, suite, obstacle };
}

/** Opens a record with its protection. */
export async function open(record: OpenRecord): Promise<OpenRecord> {
  const { bytes, protection } = record;
  if (protection === undefined) return record;
  const content = await openRecord(protection.keys, protection.sequence, bytes);
  if (content === undefined) return { ...record, plain: undefined };
  const plain = bytes.slice();
  plain.set(content, 5);
  return { ...record, plain };
}

/** Takes opened records apart. Never throws, whatever the bytes are. */
export function dissect(records: readonly OpenRecord[]): Dissection {
  const joiners = [createJoiner(false), createJoiner(true)];
  const messages: Message[] = [];
  records.forEach((record, index) => {
    const content = findContent(record);
    if (content?.type !== 22) return;
    const bytes = (record.plain ?? record.bytes).subarray(content.start, content.end);
    messages.push(...(joiners[record.fromClient ? 1 : 0]?.add(index, bytes, content.start) ?? []));
  });
  messages.push(...joiners.flatMap((joiner) => joiner.end()));
  return {
    records: records.map((record, index) => ({ ...record, ...dissectRecord(record, index, messages) })),
    messages,
  };
}

function dissectRecord(
  record: OpenRecord,
  index: number,
  messages: readonly Message[],
): { field: Field; title: string } {
  const { bytes, plain, protection } = record;
  const content = findContent(record);
  const titles: string[] = [];
  const isClosed = protection === undefined && bytes[0] === 23;
  const showTag = protection && `${protection.label}, sequence number ${protection.sequence}`;

  /** Reads what the record carries, by its type. */
  const readContent = (reader: FieldReader): void => {
    if (content?.type === 22) readPieces(reader);
    else if (content?.type === 21) {
      titles.push(`Alert: ${codes.alerts.get(reader.bytes[reader.at + 1] ?? 0)}`);
      reader.number("level", 1, { show: codes.showAlertLevel });
      reader.number("description", 1, { show: codes.showAlert });
    } else if (content?.type === 20) {
      titles.push("ChangeCipherSpec");
      reader.number("change_cipher_spec", 1);
    } else if (content?.type === 23) {
      titles.push("application data");
      reader.rest("application data", { kind: "data", show: showPrintable });
    } else {
      titles.push("unknown content");
      reader.rest("unknown content");
      reader.blame(`content of type ${content?.type} is unknown`);
    }
  };
  const readPieces = (reader: FieldReader): void => {
    for (const { name, field, pieces, isCut } of messages) {
      let offset = 0;
      for (const [part, { record: at, at: place, size }] of pieces.entries()) {
        const start = offset;
        offset += size;
        if (at !== index) continue;
        titles.push(pieces.length > 1 || isCut ? `${name} (part ${part + 1} of ${pieces.length})` : name);
        reader.parts.push(...cutFields([field], start, offset, place - start));
        reader.at += size;
        if (isCut) reader.blame("bytes of this message are missing");
      }
    }
  };

  const root = new FieldReader(plain ?? bytes);
  root.group(protection ? "TLSCiphertext" : "TLSPlaintext", bytes.length, (reader) => {
    reader.number(protection || isClosed ? "opaque_type" : "type", 1, { show: codes.showContentType });
    reader.number("legacy_record_version", 2, { show: codes.showVersion });
    const length = reader.number("length", 2);
    if (length !== reader.left) reader.blame(`the header says ${length} bytes, and ${reader.left} follow`);
    if (protection === undefined && !isClosed) return reader.group("fragment", reader.left, readContent);
    return reader.group("encrypted_record", reader.left, (inner) => {
      const size = Math.max(0, inner.left - tagBytes);
      if (content === undefined || isClosed) {
        titles.push("protected record");
        inner.take("ciphertext", size);
      } else
        inner.group("TLSInnerPlaintext", size, (inside) => {
          inside.group("content", content.end - content.start, readContent);
          inside.number("type", 1, { show: codes.showContentType });
          inside.rest("zeros", { kind: "framing" });
        });
      inner.rest("authentication tag", { kind: "proof", show: toHex });
      return showTag;
    });
  });
  const [field = { name: "record", start: 0, end: 0, parts: [] }] = root.parts;
  return { field, title: titles.join(", ") || "empty record" };
}

function showPrintable(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes.subarray(0, 80)).replace(/[^\x20-\x7e]/g, "·");
}
