/** Vectors of shares of a master key: Shamir's secret sharing over the field of AES. */
import { createHash } from "node:crypto";
import { fixedBytes } from "./keys.ts";
import { utf8, type VectorCase, type VectorSet, vectorCase } from "./vector-set.ts";

/** A product in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1 (FIPS 197, section 4.2). */
function multiply(a: number, b: number): number {
  let product = 0;
  for (let bit = 7; bit >= 0; bit -= 1) {
    product = (product << 1) ^ (product & 0x80 ? 0x11b : 0);
    if ((b >> bit) & 1) product ^= a;
  }
  return product;
}

/** The values at x of the polynomials whose coefficients of x^i are the bytes of the i-th buffer. */
function evaluate(coefficients: readonly Uint8Array[], x: number): Uint8Array {
  return Uint8Array.from({ length: 32 }, (_, at) =>
    coefficients.reduceRight((sum, bytes) => multiply(sum, x) ^ (bytes[at] ?? 0), 0),
  );
}

function toBase32(bytes: Uint8Array): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  const digits = bits.replaceAll(/.{5}/g, (digit) => alphabet[Number.parseInt(digit, 2)] ?? "");
  return digits.replaceAll(/.{20}/g, (line) => `${line.replaceAll(/.{4}/g, "$& ").trim()}\n`).trim();
}

const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

interface Shape {
  readonly threshold: number;
  /** The numbers of the shares that the case has. */
  readonly numbers: readonly number[];
  /** Changes the bytes of the last share before its checksum is computed. */
  readonly forge?: (share: Uint8Array) => void;
  /** Changes the text of the shares. */
  readonly type?: (shares: string) => string;
}

function make(name: string, { threshold, numbers, forge, type = (text) => text }: Shape): VectorCase {
  const masterKey = fixedBytes(`key share, ${name}, key`, 32);
  const setId = fixedBytes(`key share, ${name}, set`, 4);
  const masterKeyId = createHash("sha256")
    .update("qsp master key id")
    .update(masterKey)
    .digest()
    .subarray(0, 16);
  const random = Array.from({ length: threshold - 1 }, (_, i) => fixedBytes(`key share, ${name}, ${i}`, 32));
  const texts = numbers.map((number, i) => {
    const [x = 1] = fixedBytes(`key share, ${name}, x of ${number}`, 1);
    const head = Uint8Array.of(1, threshold, number, ...setId, ...masterKeyId.subarray(0, 6));
    const body = Uint8Array.of(...head, ...evaluate([masterKey, ...random], x), x);
    if (i === numbers.length - 1) forge?.(body);
    const sum = createHash("sha256")
      .update(utf8("qsp master key share"))
      .update(body)
      .digest()
      .subarray(0, 4);
    return toBase32(Uint8Array.of(...body, ...sum));
  });
  return vectorCase(name, {
    valid: forge === undefined && type("1") === "1",
    input: { shares: type(texts.join("\n\n")) },
    intermediate: { setId: setId.toHex(), masterKeyId: masterKeyId.toString("hex") },
    result: { masterKey: masterKey.toHex() },
  });
}

/** Shares that restore a key, and what must be refused. */
export function keyShareVectors(): VectorSet {
  return {
    format: "qsp-vectors/1",
    name: "key-share",
    specification: "docs/formats.md#shares-of-a-master-key",
    note: "The coefficients are deterministic here; the command line draws them at random. A blank line separates the shares.",
    keys: {},
    cases: [
      make("two of two", { threshold: 2, numbers: [1, 2] }),
      make("three of five, in another order", { threshold: 3, numbers: [5, 1, 3] }),
      make("more shares than the threshold", { threshold: 2, numbers: [1, 2, 3, 4] }),
      make("a mistyped character", {
        ...{ threshold: 2, numbers: [1, 2] },
        type: (text) => text.replace(/.$/, (last) => (last === "0" ? "1" : "0")),
      }),
      make("a forged share with a right checksum", {
        ...{ threshold: 2, numbers: [1, 2] },
        forge: (share) => share.fill(7, 13, 45),
      }),
    ],
  };
}
