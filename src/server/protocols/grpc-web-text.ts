/**
 * Serves gRPC-Web text mode with a binary-mode handler: base64 in, base64 out. Text mode is the default of
 * the npm package grpc-web, because a page can read text while it arrives.
 *
 * Both sides may flush at any byte, so padding can occur in the middle (grpc/grpc, doc/PROTOCOL-WEB.md,
 * "Text-encoded streams").
 */
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import { refuse } from "../../errors.ts";

const textType = /^application\/grpc-web-text(?=\s*(?:[+;]|$))/i;
const binaryType = /^application\/grpc-web(?=[+;]|$)/;

/**
 * Decodes a whole body.
 *
 * @throws BODY_INCOMPLETE, MESSAGE_MALFORMED
 */
export function decodeText(text: Uint8Array): Buffer {
  const decode = createBase64Decoder();
  const bytes = decode(text);
  requireWholeGroups(decode);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Converts the headers of a text-mode request to binary mode. */
export function toBinaryHeader(header: Headers): void {
  header.set("content-type", (header.get("content-type") ?? "").replace(textType, "application/grpc-web"));
  // It counts the text, which is longer than the bytes.
  header.delete("content-length");
}

/** Converts a binary-mode answer to text mode. Answers of other types do not change. */
export function toTextResponse(response: UniversalServerResponse): UniversalServerResponse {
  const header = new Headers(response.header);
  const contentType = header.get("content-type") ?? "";
  if (!binaryType.test(contentType)) return response;
  header.set("content-type", contentType.replace(binaryType, "application/grpc-web-text"));
  return { ...response, header, ...(response.body && { body: encodePieces(response.body) }) };
}

/** Each piece has its own padding, so that the peer can read it at once. */
async function* encodePieces(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces)
    yield Buffer.from(Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength).toString("base64"));
}

/**
 * Converts the body of a text-mode request to binary mode.
 *
 * @throws BODY_INCOMPLETE, MESSAGE_MALFORMED
 */
export async function* decodePieces(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const decode = createBase64Decoder();
  // Not "for await": a refusal would end the source and the connection that must carry the answer.
  const source = pieces[Symbol.asyncIterator]();
  for (let next = await source.next(); next.done !== true; next = await source.next()) {
    const bytes = decode(next.value);
    if (bytes.length > 0) yield bytes;
  }
  requireWholeGroups(decode);
}

function requireWholeGroups(decode: ReturnType<typeof createBase64Decoder>): void {
  if (decode.isWithinGroup())
    throw refuse("BODY_INCOMPLETE", "the request ends in the middle of a base64 group");
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const padding = "=".charCodeAt(0);
/** The value of each character; 64 for characters outside the alphabet. */
const values = Uint8Array.from({ length: 256 }, (_, code) => {
  const value = alphabet.indexOf(String.fromCharCode(code));
  return value < 0 ? 64 : value;
});

/**
 * Decodes base64 (RFC 4648, section 4) whose groups of four characters may be padded anywhere and split
 * between pieces. Node's own decoder stops at padding and skips characters that are not base64.
 */
function createBase64Decoder() {
  let group = 0;
  let characters = 0;
  let padded = 0;
  const decode = (text: Uint8Array): Uint8Array => {
    const bytes = new Uint8Array(Math.ceil(((characters + text.length) * 3) / 4));
    let length = 0;
    for (const code of text) {
      const value = values[code] ?? 64;
      // Only the last two characters of a group may be padding, and nothing but padding follows padding.
      if (code === padding && characters >= 2) padded += 1;
      else if (value === 64 || padded > 0) throw notBase64();
      group = (group << 6) | (value & 63);
      characters += 1;
      if (characters < 4) continue;
      for (let shift = 16; shift >= 8 * padded; shift -= 8) bytes[length++] = (group >> shift) & 0xff;
      group = characters = padded = 0;
    }
    return bytes.subarray(0, length);
  };
  return Object.assign(decode, { isWithinGroup: () => characters > 0 });
}

function notBase64(): Error {
  return refuse(
    "MESSAGE_MALFORMED",
    "the body is not valid base64 (RFC 4648, section 4), which application/grpc-web-text requires",
  );
}
