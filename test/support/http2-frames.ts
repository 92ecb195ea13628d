/** Hand-written HTTP/2 frames (RFC 9113), and field blocks (RFC 7541) without tables or Huffman codes. */

/** Frame types (RFC 9113, section 6). */
export const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

/** Frame flags. */
export const flags = { endStream: 0x1, ack: 0x1, endHeaders: 0x4, padded: 0x8, priority: 0x20 } as const;

/** The connection preface (RFC 9113, section 3.4). */
export const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** Encodes a frame. Every part may be invalid. */
export function writeFrame(type: number, flag: number, streamId: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flag, 4);
  head.writeUInt32BE(streamId >>> 0, 5);
  return Buffer.concat([head, payload]);
}

/** An empty SETTINGS frame. */
export const emptySettings = writeFrame(frameTypes.settings, 0, 0, Buffer.alloc(0));

/** The first bytes that a client sends. */
export const opening = Buffer.concat([preface, emptySettings]);

/** Encodes a four-byte number, as in RST_STREAM and WINDOW_UPDATE. */
export function writeUint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
}

/** Encodes settings as identifiers and values. */
export function writeSettings(settings: readonly (readonly [number, number])[]): Buffer {
  return Buffer.concat(
    settings.flatMap(([identifier, value]) => {
      const name = Buffer.alloc(2);
      name.writeUInt16BE(identifier);
      return [name, writeUint32(value)];
    }),
  );
}

/** Encodes fields as literals without indexing, with new names (RFC 7541, section 6.2.2). */
export function writeFields(fields: readonly (readonly [string, string])[]): Buffer {
  return Buffer.concat(
    fields.flatMap(([name, value]) => [Buffer.from([0]), ...writeText(name), ...writeText(value)]),
  );
}

function writeText(text: string): Buffer[] {
  const bytes = Buffer.from(text, "latin1");
  return [writeLength(bytes.length), bytes];
}

/** Encodes an integer with a seven-bit prefix (RFC 7541, section 5.1). */
function writeLength(length: number): Buffer {
  if (length < 127) return Buffer.from([length]);
  const bytes = [127];
  let rest = length - 127;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return Buffer.from([...bytes, rest]);
}
