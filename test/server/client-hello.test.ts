import { describe, expect, it } from "vitest";
import { readClientHello } from "../../src/server/client-hello.ts";
import { captureClientHello } from "./tls-clients.ts";

const numberOf = (value: number, bytes: number): Buffer => {
  const number = Buffer.alloc(bytes);
  number.writeUIntBE(value, 0, bytes);
  return number;
};
/** A vector of TLS: its length in a number of bytes, and its content (RFC 8446, section 3.4). */
const vector = (lengthBytes: number, ...content: Buffer[]): Buffer => {
  const bytes = Buffer.concat(content);
  return Buffer.concat([numberOf(bytes.length, lengthBytes), bytes]);
};
const listOf = (codePoints: readonly number[]): Buffer =>
  vector(2, ...codePoints.map((code) => numberOf(code, 2)));
const extension = (type: number, content: Buffer): Buffer =>
  Buffer.concat([numberOf(type, 2), vector(2, content)]);
const record = (fragment: Buffer): Buffer =>
  Buffer.concat([Buffer.from("160301", "hex"), vector(2, fragment)]);

/** A handshake message with a ClientHello (RFC 8446, section 4.1.2). */
function helloWith(...extensions: Buffer[]): Buffer {
  const body = [
    Buffer.alloc(2 + 32, 3),
    vector(1, Buffer.alloc(32)),
    listOf([0x1302]),
    vector(1, Buffer.of(0)),
  ];
  return Buffer.concat([Buffer.of(1), vector(3, ...body, vector(2, ...extensions))]);
}
const groupsOf = (...codes: number[]): Buffer => extension(10, listOf(codes));
const algorithmsOf = (...codes: number[]): Buffer => extension(13, listOf(codes));
/** An extension that fills the message. */
const padding = (bytes: number): Buffer => extension(21, Buffer.alloc(bytes));

const message = helloWith(groupsOf(0x1a1a, 4588, 29), padding(40), algorithmsOf(0x0905, 0x0403));
const offers = {
  groups: Uint16Array.of(0x1a1a, 4588, 29),
  signatureAlgorithms: Uint16Array.of(0x0905, 0x0403),
};

/** Spreads a message over records of at most this length. */
function recordsOf(bytes: Buffer, length: number): Buffer {
  const count = Math.ceil(bytes.length / length);
  const fragments = Array.from({ length: count }, (_none, i) => bytes.subarray(i * length, (i + 1) * length));
  return Buffer.concat(fragments.map(record));
}

describe("readClientHello", () => {
  it.each([
    ["in one record", record(message)],
    ["in several records", recordsOf(message, 10)],
    ["before other records", Buffer.concat([record(message), Buffer.from("140303000101", "hex")])],
  ])("returns the offered groups and signature algorithms, in the client's order: %s", (_, bytes) => {
    expect(readClientHello(bytes)).toEqual(offers);
  });

  it("waits for the rest of a ClientHello, wherever it is cut", () => {
    for (const whole of [record(message), recordsOf(message, 10)]) {
      const cuts = Array.from({ length: whole.length }, (_none, end) =>
        readClientHello(whole.subarray(0, end)),
      );
      expect(new Set(cuts)).toEqual(new Set(["incomplete"]));
    }
  });

  it("returns empty lists for extensions that are absent", () => {
    expect(readClientHello(record(helloWith(padding(1))))).toEqual({
      groups: new Uint16Array(),
      signatureAlgorithms: new Uint16Array(),
    });
  });

  it("keeps at most 100 code points of each list", () => {
    const many = Array.from({ length: 300 }, (_none, index) => index);
    const read = readClientHello(record(helloWith(groupsOf(...many), algorithmsOf(...many))));
    const kept = Uint16Array.from(many.slice(0, 100));
    expect(read).toEqual({ groups: kept, signatureAlgorithms: kept });
  });

  const handshakeOf = (type: number, ...content: Buffer[]): Buffer =>
    record(Buffer.concat([Buffer.of(type), ...content]));
  it.each<[what: string, bytes: Buffer]>([
    ["HTTP", Buffer.from("GET / HTTP/1.1\r\n\r\n")],
    ["the first byte of something else", Buffer.of(0x80)],
    ["an alert", Buffer.from("15030100020100", "hex")],
    ["a different handshake message", handshakeOf(2, message.subarray(1))],
    ["a list longer than its extension", record(helloWith(extension(10, Buffer.of(0, 9, 0, 29))))],
    ["an extension longer than the message", record(helloWith(Buffer.of(0, 10, 1, 0)))],
    ["a message without extensions", handshakeOf(1, vector(3, Buffer.alloc(36)))],
    ["a message longer than 16 KiB", record(helloWith(padding(17_000)).subarray(0, 100))],
    [
      "a record that never ends",
      Buffer.concat([Buffer.from("160301ffff010000", "hex"), Buffer.alloc(17_000)]),
    ],
    ["more than 32 records", recordsOf(message, 1).subarray(0, 33 * 6)],
    ["empty records", Buffer.concat(Array.from({ length: 33 }, () => record(Buffer.alloc(0))))],
  ])("gives up on %s", (_what, bytes) => {
    expect(readClientHello(bytes)).toBeUndefined();
  });

  it("neither fails nor waits forever, whichever byte of a real ClientHello is altered", async () => {
    const hello = await captureClientHello();
    expect(readClientHello(hello)).toMatchObject({ groups: expect.any(Uint16Array) });
    for (let at = 0; at < hello.length; at += 1)
      for (const value of [0x00, 0x7f, 0xff]) {
        const altered = Buffer.from(hello);
        altered[at] = value;
        const rest = Buffer.alloc(17_000);
        expect(readClientHello(Buffer.concat([altered, rest]))).not.toBe("incomplete");
      }
  });
});
