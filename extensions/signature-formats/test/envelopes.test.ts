import { describe, expect, it } from "vitest";
import { encodeCoseHeader, encodeSigStructure, parseCose, renderCose } from "../cose.ts";
import { encodePae, parseDsse, renderDsse } from "../dsse.ts";
import { encodeJwsHeader, encodeJwsSigningInput, parseJws, renderJws } from "../jws.ts";

const dsseSignatures = [{ keyid: "k", sig: "AQID" }];
const envelope = { payload: "aGVsbG8=", payloadType: "text/plain", signatures: dsseSignatures };
const parseEnvelope = (value: unknown) =>
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
    const signatures = [{ keyId: "", signature: Uint8Array.of(1) }];
    const written = { payloadType: "a/b", payload: Uint8Array.of(120), signatures };
    expect(parseDsse(Buffer.from(renderDsse(written)))).toEqual(written);
  });

  it("accepts both base64 alphabets and ignores unknown members", () => {
    const both = ["+/8=", "-_8="].map(
      (payload) => parseEnvelope({ ...envelope, payload, more: { a: [1] } }).payload,
    );
    expect(both).toEqual([Uint8Array.of(251, 255), Uint8Array.of(251, 255)]);
  });

  it.each([
    ["a text that is not JSON", "hello", /not one JSON object/],
    ["trailing bytes", `${JSON.stringify(envelope)}x`, /not one JSON object/],
    ["a duplicate member", '{"payload":"","payload":"","payloadType":"a","signatures":[]}', /duplicate/],
    ["a duplicate in two spellings", '{"payload":"","p\\u0061yload":"","payloadType":"a"}', /duplicate/],
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
    expect(() => parseEnvelope(value)).toThrow(message);
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

const header = (members: object | string): string =>
  Buffer.from(typeof members === "string" ? members : JSON.stringify(members)).toString("base64url");
const good = header({ alg: "ML-DSA-65" });
const typed = header({ alg: "ML-DSA-65", typ: "a" });

async function* chunksOf(...texts: string[]) {
  for (const text of texts) yield Buffer.from(text);
}

describe("JWS", () => {
  const splits = [[["hello"]], [["h", "el", "lo"]], [["", "he", "llo"]], [["hell", "o"]]];
  it.each(splits)("signs the same bytes regardless of the chunks: %j", async (texts) => {
    const chunks = await Array.fromAsync(encodeJwsSigningInput("aaaa", chunksOf(...texts)));
    expect(Buffer.concat(chunks).toString()).toBe("aaaa.aGVsbG8");
  });

  it.each(["compact", "json"] as const)("parses what it writes, %s", (serialization) => {
    const protectedHeader = encodeJwsHeader("ML-DSA-87", "kid");
    const [payload, signature] = [Uint8Array.of(104), Uint8Array.of(1)];
    const algorithm = "ML-DSA-87";
    for (const written of [
      { protectedHeader, payload, signature },
      { protectedHeader, payload: undefined, signature },
    ])
      expect(parseJws(Buffer.from(renderJws(written, serialization)))).toEqual({ algorithm, ...written });
  });

  it.each([
    ["two parts", `${good}.AA`, /three parts/],
    ["five parts, as in JWE", `${good}.AA.AA.AA.AA`, /three parts/],
    ["a million dots", ".".repeat(1_000_000), /three parts/],
    ["padding", `${good}.AA==.AA`, /payload of the JWS is not base64url/],
    ["stray bits in the signature", `${good}..AB`, /signature of the JWS is not base64url/],
    ["a trailing space", `${good}..AA `, /signature of the JWS is not base64url/],
    ["no algorithm", `${header({})}..AA`, /alg/],
    ["the algorithm none", `${header({ alg: "none" })}..`, /alg/],
    ["a different algorithm", `${header({ alg: "ES256" })}..AA`, /alg/],
    ["a duplicate header member", `${header('{"alg":"none","alg":"ML-DSA-65"}')}..AA`, /duplicate/],
    ["crit", `${header({ alg: "ML-DSA-65", crit: ["x"], x: 1 })}..AA`, /crit/],
    ["b64", `${header({ alg: "ML-DSA-65", b64: false })}..AA`, /b64/],
    ["an embedded key in the header", `${header({ alg: "ML-DSA-65", jwk: {} })}..AA`, /jwk/],
    ["a header that is too long", `${"A".repeat(20_000)}..AA`, /limit is 16384/],
    ["a duplicate member", `{"protected":"${good}","protected":"${good}","signature":"AA"}`, /duplicate/],
    [
      "several signatures",
      `{"payload":"","signatures":[{"protected":"${good}","signature":"AA"}]}`,
      /general/,
    ],
    ["an unprotected alg", `{"protected":"${good}","header":{"alg":"none"},"signature":"AA"}`, /alg/],
    [
      "a member in both headers",
      `{"protected":"${typed}","header":{"typ":"b"},"signature":"AA"}`,
      /header of the JWS contains typ/,
    ],
    ["a missing protected header", '{"header":{},"signature":"AA"}', /protected/],
    ["endless brackets", `{"protected":${"[".repeat(1_000_000)}`, /not one JSON object/],
  ])("rejects %s", (_, text, message) => {
    expect(() => parseJws(Buffer.from(text))).toThrow(message);
  });
});

const parseHex = (hex: string) => parseCose(Buffer.from(hex, "hex"));
/** 18([h'a1013830', {}, nil, h'00']) */
const coseMessage = "d28444a1013830a0f64100";

describe("COSE_Sign1", () => {
  it("uses the identifiers of RFC 9964", () => {
    const names = ["ML-DSA-44", "ML-DSA-65", "ML-DSA-87"] as const;
    const headers = names.map((name) => Buffer.from(encodeCoseHeader(name)).toString("hex"));
    expect(headers).toEqual(["a101382f", "a1013830", "a1013831"]);
  });

  it("signs the Sig_structure of RFC 9052", () => {
    const bytes = encodeSigStructure(encodeCoseHeader("ML-DSA-65"), Buffer.from("hi"));
    // ["Signature1", h'a1013830', h'', h'6869']
    expect(Buffer.from(bytes).toString("hex")).toBe("846a5369676e61747572653144a101383040426869");
  });

  it("parses what it writes", () => {
    const protectedHeader = encodeCoseHeader("ML-DSA-65");
    for (const payload of [undefined, Uint8Array.of(), Uint8Array.of(7)]) {
      const written = { protectedHeader, payload, signature: Uint8Array.of(1) };
      const read = parseCose(renderCose(written, Uint8Array.of(2)));
      expect(read).toEqual({ algorithm: "ML-DSA-65", ...written });
    }
    expect(parseHex(coseMessage).payload).toBeUndefined();
  });

  it.each([
    ["nothing", "", /strict CBOR/],
    ["trailing bytes", `${coseMessage}00`, /strict CBOR: 1 bytes follow it/],
    ["a truncated message", coseMessage.slice(0, -2), /strict CBOR/],
    ["a missing tag", coseMessage.slice(2), /tag 18/],
    ["a different tag", `d1${coseMessage.slice(2)}`, /strict CBOR/],
    ["five elements", "d28544a1013830a0f6410000", /four elements/],
    ["a length in more bytes than necessary", "d2845804a1013830a0f64100", /strict CBOR/],
    ["an array of indefinite length", "d29f44a1013830a0f64100ff", /strict CBOR/],
    ["a payload of indefinite length", "d28444a1013830a05f4100ff4100", /strict CBOR/],
    ["a duplicate label", "d28444a1013830a204410004410041004100", /strict CBOR/],
    ["a duplicate protected label", "d28447a2013830013830a0f64100", /protected header is not strict CBOR/],
    ["a label in both headers", "d28447a2013830044101a1044102f64100", /same label/],
    ["an empty protected header", "d28440a0f64100", /strict CBOR/],
    ["a protected header that is a number", "d28401a0f64100", /byte strings/],
    ["the algorithm in the unprotected header", "d28441a0a1013830f64100", /alg or crit/],
    ["crit", "d28447a2013830028101a0f64100", /crit/],
    ["an unsupported algorithm", "d28443a10126a0f64100", /-48, -49 or -50/],
    ["a float as a label", "d28446a1f93c003830a0f64100", /number 1 is encoded as a floating/],
    ["a float as an algorithm", "d28445a101f9d220a0f64100", /number -49 is encoded as a floating/],
    ["an algorithm as text", "d2844ca101694d4c2d4453412d3635a0f64100", /-48, -49 or -50/],
    ["a text payload", "d28444a1013830a062686941 00".replace(" ", ""), /payload must be/],
    ["nested arrays", `d2${"81".repeat(500_000)}`, /more than 256 data items/],
    ["an array that claims four billion elements", "d29affffffff", /strict CBOR/],
    ["a byte string that claims four billion bytes", "d2845affffffff", /strict CBOR/],
  ])("rejects %s", (_, hex, message) => {
    expect(() => parseHex(hex)).toThrow(message);
  });

  it("rejects a message that is too large", () => {
    expect(() => parseCose(new Uint8Array(17 * 1024 * 1024))).toThrow(/the limit is/);
  });
});
