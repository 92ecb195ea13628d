import { describe, expect, it } from "vitest";
import { encodePae, parseDsse, renderDsse } from "../dsse.ts";

const envelope = {
  payload: "aGVsbG8=",
  payloadType: "text/plain",
  signatures: [{ keyid: "k", sig: "AQID" }],
};
const parse = (value: unknown) =>
  parseDsse(Buffer.from(typeof value === "string" ? value : JSON.stringify(value)));

describe("DSSE", () => {
  it("signs the encoding of the protocol's own example", () => {
    const pae = encodePae("http://example.com/HelloWorld", Buffer.from("hello world"));
    expect(Buffer.from(pae).toString()).toBe("DSSEv1 29 http://example.com/HelloWorld 11 hello world");
  });

  it("counts the bytes of a type, not its characters", () => {
    expect(Buffer.from(encodePae("é", new Uint8Array())).toString()).toBe("DSSEv1 2 é 0 ");
  });

  it("reads what it writes", () => {
    const written = {
      payloadType: "a/b",
      payload: Buffer.from("x"),
      signatures: [{ keyId: "", signature: Buffer.of(1) }],
    };
    const read = parseDsse(Buffer.from(renderDsse(written)));
    expect(JSON.stringify(read)).toBe(
      JSON.stringify({
        ...written,
        payload: Uint8Array.of(120),
        signatures: [{ keyId: "", signature: Uint8Array.of(1) }],
      }),
    );
  });

  it("accepts both alphabets of base64, and ignores members that it does not know", () => {
    const both = ["+/8=", "-_8="].map((payload) => parse({ ...envelope, payload, more: { a: [1] } }).payload);
    expect(both).toEqual([Uint8Array.of(251, 255), Uint8Array.of(251, 255)]);
  });

  it.each([
    ["no JSON", "hello", /not one JSON object/],
    ["bytes behind the object", `${JSON.stringify(envelope)}x`, /not one JSON object/],
    ["a member twice", '{"payload":"","payload":"","payloadType":"a","signatures":[]}', /duplicate/],
    [
      "a member twice, spelled in two ways",
      '{"payload":"","p\\u0061yload":"","payloadType":"a"}',
      /duplicate/,
    ],
    ["no payload", { ...envelope, payload: undefined }, /payload must be a string/],
    [
      "a payload that is inherited",
      '{"__proto__":{"payload":""},"payloadType":"a"}',
      /payload must be a string/,
    ],
    ["a payload with white space", { ...envelope, payload: "aGVs\nbG8=" }, /payload is not base64/],
    ["a payload without padding", { ...envelope, payload: "aGVsbG8" }, /payload is not base64/],
    ["a payload with stray bits", { ...envelope, payload: "aGVsbG9=" }, /payload is not base64/],
    ["an empty type", { ...envelope, payloadType: "" }, /payload type is empty/],
    ["a type with a control character", { ...envelope, payloadType: "a\u001b[2J" }, /control character/],
    ["a type of 2,000 bytes", { ...envelope, payloadType: "a".repeat(2000) }, /limit is 1024/],
    ["no signatures", { ...envelope, signatures: [] }, /1 to 16/],
    ["17 signatures", { ...envelope, signatures: Array(17).fill(envelope.signatures[0]) }, /1 to 16/],
    ["signatures that are no array", { ...envelope, signatures: { length: 1 } }, /1 to 16/],
    ["a signature that is no object", { ...envelope, signatures: [null] }, /not an object/],
    ["a keyid that is no string", { ...envelope, signatures: [{ keyid: 1, sig: "" }] }, /keyid/],
    ["a signature without sig", { ...envelope, signatures: [{ keyid: "" }] }, /sig must be a string/],
  ])("refuses %s", (_, value, message) => {
    expect(() => parse(value)).toThrow(message);
  });

  it.each([
    ["brackets", Buffer.alloc(20_000_000, "[")],
    ["quotes", Buffer.alloc(20_000_000, '"')],
    ["escaped quotes", Buffer.from('"\\'.repeat(10_000_000))],
    ["objects", Buffer.from('{"a":'.repeat(4_000_000))],
    ["more than the limit", Buffer.alloc(30_000_000)],
  ])("refuses millions of bytes of %s", (_, bytes) => {
    expect(() => parseDsse(bytes)).toThrow(/envelope/);
  });
});
