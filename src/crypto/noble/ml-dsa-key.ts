import { shake128, shake256 } from "@noble/hashes/sha3.js";
import { type MlDsaAlgorithm, signatureAlgorithms } from "../algorithms.ts";
import { equalBytes, wipe } from "../bytes.ts";
import { CryptoError } from "../crypto-error.ts";

/** The modulus q, its primitive 512th root of unity ζ, and the dropped bits d (FIPS 204, table 1). */
const q = 8380417;
const zeta = 1753;
const d = 13;

/** Number of coefficients of a polynomial, and 256⁻¹ mod q (FIPS 204, algorithm 42). */
const n = 256;
const inverseOfN = 8347681;

/** Rows k and columns ℓ of the matrix A, and the bound η of secret coefficients (FIPS 204, table 1). */
const dimensions = {
  "ML-DSA-44": { k: 4, l: 4, eta: 2 },
  "ML-DSA-65": { k: 6, l: 5, eta: 4 },
  "ML-DSA-87": { k: 8, l: 7, eta: 2 },
} as const satisfies Record<MlDsaAlgorithm, { k: number; l: number; eta: number }>;

type Polynomial = number[];

/**
 * Derives the public key from an expanded secret key and checks every part that depends on another:
 * s1 and s2 are in range, t0 and tr are those of the derived public key (FIPS 204, algorithms 6 and
 * 25). The noble library signs with a key that fails this, and the signature does not verify.
 *
 * @param secretKey ρ ‖ K ‖ tr ‖ s1 ‖ s2 ‖ t0, `secretKeyBytes` long.
 * @throws INVALID_KEY
 */
export function deriveMlDsaPublicKey(algorithm: MlDsaAlgorithm, secretKey: Uint8Array): Uint8Array {
  const { k, l, eta } = dimensions[algorithm];
  const secretBits = eta === 2 ? 3 : 4;
  const rho = secretKey.subarray(0, 32);
  const tr = secretKey.subarray(64, 128);
  const t0Start = 128 + 32 * secretBits * (k + l);
  const secrets = unpack(secretKey.subarray(128, t0Start), secretBits).map((z) => eta - z);
  if (secrets.some((coefficient) => coefficient < -eta))
    throw inconsistent(algorithm, "s1 or s2 is out of range");
  const polynomials = Array.from({ length: k + l }, (_, i) => secrets.slice(n * i, n * (i + 1)));
  const t = multiply(rho, polynomials.slice(0, l), polynomials.slice(l));
  const { t1, t0 } = powerOfTwoRound(t);
  secrets.fill(0);
  const publicKey = new Uint8Array(signatureAlgorithms[algorithm].publicKeyBytes);
  publicKey.set(rho);
  publicKey.set(pack(t1, 10), 32);
  const packedT0 = pack(
    t0.map((coefficient) => 2 ** (d - 1) - coefficient),
    d,
  );
  const t0Fits = equalBytes(packedT0, secretKey.subarray(t0Start));
  wipe(packedT0);
  if (!t0Fits) throw inconsistent(algorithm, "t0 does not match s1 and s2");
  if (!equalBytes(shake256(publicKey, { dkLen: 64 }), tr))
    throw inconsistent(algorithm, "tr is not the hash of its public key");
  return publicKey;
}

function inconsistent(algorithm: MlDsaAlgorithm, problem: string): CryptoError {
  return new CryptoError("INVALID_KEY", `the expanded ${algorithm} secret key is inconsistent: ${problem}`);
}

/** t = A·s1 + s2 with A expanded from ρ (FIPS 204, algorithm 6, lines 3 to 5); coefficients in [0, q). */
function multiply(rho: Uint8Array, s1: Polynomial[], s2: Polynomial[]): Polynomial {
  const s1Hat = s1.map(toNtt);
  const rows = s2.map((s2Row, row) => {
    const sum: Polynomial = new Array(n).fill(0);
    s1Hat.forEach((polynomial, column) => {
      const entry = sampleMatrixEntry(rho, row, column);
      for (let i = 0; i < n; i++) sum[i] = ((sum[i] ?? 0) + (entry[i] ?? 0) * (polynomial[i] ?? 0)) % q;
    });
    return fromNtt(sum).map((coefficient, i) => reduce(coefficient + (s2Row[i] ?? 0)));
  });
  for (const polynomial of s1Hat) polynomial.fill(0);
  return rows.flat();
}

/** Entry of Â (FIPS 204, algorithms 30 and 32): coefficients below q from SHAKE128. */
function sampleMatrixEntry(rho: Uint8Array, row: number, column: number): Polynomial {
  const stream = shake128.create().update(rho).update(Uint8Array.of(column, row));
  const entry: Polynomial = [];
  while (entry.length < n) {
    const [low = 0, middle = 0, high = 0] = stream.xof(3);
    const candidate = low | (middle << 8) | ((high & 0x7f) << 16);
    if (candidate < q) entry.push(candidate);
  }
  return entry;
}

/** Power2Round of FIPS 204, algorithm 35, on every coefficient: t = t1·2^d + t0. */
function powerOfTwoRound(t: Polynomial): { t1: Polynomial; t0: Polynomial } {
  const half = 2 ** (d - 1);
  const t1 = t.map((coefficient) => (coefficient + half - 1) >> d);
  return { t1, t0: t.map((coefficient, i) => coefficient - (t1[i] ?? 0) * 2 ** d) };
}

/** ζ^BitRev8(i) mod q (FIPS 204, appendix B). */
const zetas: readonly number[] = Array.from({ length: n }, (_, i) => {
  const exponent = Number.parseInt(i.toString(2).padStart(8, "0").split("").reverse().join(""), 2);
  let power = 1;
  for (let j = 0; j < exponent; j++) power = (power * zeta) % q;
  return power;
});

/** FIPS 204, algorithm 41. Products stay below 2^46, so that Number arithmetic is exact. */
function toNtt(polynomial: Polynomial): Polynomial {
  const w = [...polynomial];
  let m = 0;
  for (let length = n / 2; length >= 1; length /= 2) {
    for (let start = 0; start < n; start += 2 * length) {
      const z = zetas[++m] ?? 0;
      for (let j = start; j < start + length; j++) {
        const t = (z * (w[j + length] ?? 0)) % q;
        w[j + length] = ((w[j] ?? 0) - t) % q;
        w[j] = ((w[j] ?? 0) + t) % q;
      }
    }
  }
  return w;
}

/** FIPS 204, algorithm 42. */
function fromNtt(polynomial: Polynomial): Polynomial {
  const w = [...polynomial];
  let m = n;
  for (let length = 1; length < n; length *= 2) {
    for (let start = 0; start < n; start += 2 * length) {
      const z = -(zetas[--m] ?? 0);
      for (let j = start; j < start + length; j++) {
        const t = w[j] ?? 0;
        w[j] = (t + (w[j + length] ?? 0)) % q;
        w[j + length] = (z * (t - (w[j + length] ?? 0))) % q;
      }
    }
  }
  return w.map((coefficient) => reduce(coefficient * inverseOfN));
}

/** Reduces an integer to [0, q). */
function reduce(value: number): number {
  return ((value % q) + q) % q;
}

/** Reads little-endian integers of `bits` bits (FIPS 204, algorithm 19, before the subtraction). */
function unpack(bytes: Uint8Array, bits: number): number[] {
  const values: number[] = [];
  let window = 0;
  let windowBits = 0;
  for (const byte of bytes) {
    window |= byte << windowBits;
    windowBits += 8;
    for (; windowBits >= bits; windowBits -= bits) {
      values.push(window & (2 ** bits - 1));
      window >>= bits;
    }
  }
  return values;
}

/** Writes little-endian integers of `bits` bits (FIPS 204, algorithm 16). */
function pack(values: readonly number[], bits: number): Uint8Array {
  const bytes = new Uint8Array((values.length * bits) / 8);
  let window = 0;
  let windowBits = 0;
  let offset = 0;
  for (const value of values) {
    window |= value << windowBits;
    windowBits += bits;
    for (; windowBits >= 8; windowBits -= 8) {
      bytes[offset++] = window & 0xff;
      window >>= 8;
    }
  }
  return bytes;
}
