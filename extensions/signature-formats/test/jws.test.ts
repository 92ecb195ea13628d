import { describe, expect, it } from "vitest";
import { encodeJwsHeader, encodeJwsSigningInput, parseJws, renderJws } from "../jws.ts";

const header = (members: object | string): string =>
  Buffer.from(typeof members === "string" ? members : JSON.stringify(members)).toString("base64url");
const parse = (text: string) => parseJws(Buffer.from(text));
const good = header({ alg: "ML-DSA-65" });

async function* chunksOf(...texts: string[]) {
  for (const text of texts) yield Buffer.from(text);
}

describe("JWS", () => {
  it.each([[["hello"]], [["h", "el", "lo"]], [["", "he", "llo"]], [["hell", "o"]]])(
    "signs the same bytes regardless of the chunks: %j",
    async (texts) => {
      const chunks = await Array.fromAsync(encodeJwsSigningInput("aaaa", chunksOf(...texts)));
      expect(Buffer.concat(chunks).toString()).toBe("aaaa.aGVsbG8");
    },
  );

  it.each(["compact", "json"] as const)("parses what it writes, %s", (serialization) => {
    const protectedHeader = encodeJwsHeader("ML-DSA-87", "kid");
    const [payload, signature] = [Uint8Array.of(104), Uint8Array.of(1)];
    const algorithm = "ML-DSA-87";
    for (const written of [
      { protectedHeader, payload, signature },
      { protectedHeader, payload: undefined, signature },
    ])
      expect(parse(renderJws(written, serialization))).toEqual({ algorithm, ...written });
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
    [
      "alg in the unprotected header",
      `{"protected":"${good}","header":{"alg":"none"},"signature":"AA"}`,
      /alg/,
    ],
    [
      "a member in both headers",
      `{"protected":"${header({ alg: "ML-DSA-65", typ: "a" })}","header":{"typ":"b"},"signature":"AA"}`,
      /unprotected header of the JWS contains typ/,
    ],
    ["a missing protected header", '{"header":{},"signature":"AA"}', /protected/],
    ["endless brackets", `{"protected":${"[".repeat(1_000_000)}`, /not one JSON object/],
  ])("rejects %s", (_, text, message) => {
    expect(() => parse(text)).toThrow(message);
  });
});
