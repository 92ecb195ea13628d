import { describe, expect, it } from "vitest";
import { encodeCoseHeader, encodeSigStructure, parseCose, renderCose } from "../cose.ts";

const parse = (hex: string) => parseCose(Buffer.from(hex, "hex"));
/** 18([h'a1013830', {}, nil, h'00']) */
const good = "d28444a1013830a0f64100";

describe("COSE_Sign1", () => {
  it("uses the identifiers of RFC 9964", () => {
    const headers = (["ML-DSA-44", "ML-DSA-65", "ML-DSA-87"] as const).map((name) => encodeCoseHeader(name));
    expect(headers.map((header) => Buffer.from(header).toString("hex"))).toEqual([
      "a101382f",
      "a1013830",
      "a1013831",
    ]);
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
      expect(parseCose(renderCose(written, Uint8Array.of(2)))).toEqual({
        algorithm: "ML-DSA-65",
        ...written,
      });
    }
    expect(parse(good).payload).toBeUndefined();
  });

  it.each([
    ["nothing", "", /strict CBOR/],
    ["trailing bytes", `${good}00`, /strict CBOR: 1 bytes follow it/],
    ["a truncated message", good.slice(0, -2), /strict CBOR/],
    ["a missing tag", good.slice(2), /tag 18/],
    ["a different tag", `d1${good.slice(2)}`, /strict CBOR/],
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
    [
      "a label as a floating-point number",
      "d28446a1f93c003830a0f64100",
      /whole number 1 is encoded as a floating/,
    ],
    [
      "an algorithm as a floating-point number",
      "d28445a101f9d220a0f64100",
      /whole number -49 is encoded as a floating/,
    ],
    ["an algorithm as text", "d2844ca101694d4c2d4453412d3635a0f64100", /-48, -49 or -50/],
    ["a text payload", "d28444a1013830a062686941 00".replace(" ", ""), /payload must be/],
    ["nested arrays", `d2${"81".repeat(500_000)}`, /more than 256 data items/],
    ["an array that claims four billion elements", "d29affffffff", /strict CBOR/],
    ["a byte string that claims four billion bytes", "d2845affffffff", /strict CBOR/],
  ])("rejects %s", (_, hex, message) => {
    expect(() => parse(hex)).toThrow(message);
  });

  it("rejects a message that is too large", () => {
    expect(() => parseCose(new Uint8Array(17 * 1024 * 1024))).toThrow(/the limit is/);
  });
});
