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
  it("signs the encoding in the protocol's own example", () => {
    const pae = encodePae("http://example.com/HelloWorld", Buffer.from("hello world"));
    expect(Buffer.from(pae).toString()).toBe("DSSEv1 29 http://example.com/HelloWorld 11 hello world");
  });

  it("counts a type's bytes, not its characters", () => {
    expect(Buffer.from(encodePae("é", new Uint8Array())).toString()).toBe("DSSEv1 2 é 0 ");
  });

  it("parses what it writes", () => {
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

  it("accepts both base64 alphabets and ignores unknown members", () => {
    const both = ["+/8=", "-_8="].map((payload) => parse({ ...envelope, payload, more: { a: [1] } }).payload);
    expect(both).toEqual([Uint8Array.of(251, 255), Uint8Array.of(251, 255)]);
  });

  it.each([
    ["a text that is not JSON", "hello", /not one JSON object/],
    ["trailing bytes", `${JSON.stringify(envelope)}x`, /not one JSON object/],
    ["a duplicate member", '{"payload":"","payload":"","payloadType":"a","signatures":[]}', /duplicate/],
    [
      "a duplicate member spelled in two ways",
      '{"payload":"","p\\u0061yload":"","payloadType":"a"}',
      /duplicate/,
    ],
    ["a missing payload", { ...envelope, payload: undefined }, /payload must be a string/],
    ["an inherited payload", '{"__proto__":{"payload":""},"payloadType":"a"}', /payload must be a string/],
    ["a payload with white space", { ...envelope, payload: "aGVs\nbG8=" }, /payload must be base64/],
    ["a payload without padding", { ...envelope, payload: "aGVsbG8" }, /payload must be base64/],
    ["a payload with stray bits", { ...envelope, payload: "aGVsbG9=" }, /payload must be base64/],
    ["an empty type", { ...envelope, payloadType: "" }, /payload type is empty/],
    ["a type with a control character", { ...envelope, payloadType: "a\u001b[2J" }, /control character/],
    ["a type of 2,000 bytes", { ...envelope, payloadType: "a".repeat(2000) }, /limit is 1024/],
    ["no signatures", { ...envelope, signatures: [] }, /1 to 16/],
    ["17 signatures", { ...envelope, signatures: Array(17).fill(envelope.signatures[0]) }, /1 to 16/],
    ["signatures that are not an array", { ...envelope, signatures: { length: 1 } }, /1 to 16/],
    ["a signature that is not an object", { ...envelope, signatures: [null] }, /must be an object/],
    ["a keyid that is not a string", { ...envelope, signatures: [{ keyid: 1, sig: "" }] }, /keyid/],
    ["a signature without sig", { ...envelope, signatures: [{ keyid: "" }] }, /sig must be a string/],
  ])("rejects %s", (_, value, message) => {
    expect(() => parse(value)).toThrow(message);
  });

  it.each([
    ["brackets", Buffer.alloc(20_000_000, "[")],
    ["quotes", Buffer.alloc(20_000_000, '"')],
    ["escaped quotes", Buffer.from('"\\'.repeat(10_000_000))],
    ["objects", Buffer.from('{"a":'.repeat(4_000_000))],
    ["data beyond the limit", Buffer.alloc(30_000_000)],
  ])("rejects millions of bytes of %s", (_, bytes) => {
    expect(() => parseDsse(bytes)).toThrow(/envelope/);
  });
});
