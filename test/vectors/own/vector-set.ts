/** The form of our own test vectors; see README.md. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Algorithm } from "../../../src/crypto/algorithms.ts";

/** A value of a vector: text, numbers, flags, and bytes as lower-case hexadecimal digits. */
export type Value = string | number | boolean | null | readonly Value[] | { readonly [name: string]: Value };

export type Values = { readonly [name: string]: Value };

/** A key pair that cases name. */
export interface VectorKey {
  readonly algorithm: Algorithm;
  /** The seed in hexadecimal: 32 bytes (ML-DSA), 64 bytes d ‖ z (ML-KEM), 32 bytes (X-Wing), or the 32-byte scalar (ECDSA). */
  readonly seed: string;
  /** The raw public key in hexadecimal. */
  readonly publicKey: string;
}

/** One case. */
export interface VectorCase {
  readonly name: string;
  /** False if a verifier must reject `result`. */
  readonly valid: boolean;
  /** What an implementation starts with. */
  readonly input: Values;
  /** Intermediate bytes, which help to locate the first difference. */
  readonly intermediate: Values;
  /** What an implementation must produce or verify. */
  readonly result: Values;
}

/** The vectors of one format. */
export interface VectorSet {
  readonly format: "qsp-vectors/1";
  /** Name of the file without its extension. */
  readonly name: string;
  /** The section of docs/formats.md that specifies the format. */
  readonly specification: string;
  readonly note: string;
  readonly keys: { readonly [name: string]: VectorKey };
  readonly cases: readonly VectorCase[];
}

/** All sets of this folder. */
export const vectorSets: readonly VectorSet[] = readdirSync(import.meta.dirname)
  .filter((name) => name.endsWith(".json"))
  .map((name) => JSON.parse(readFileSync(join(import.meta.dirname, name), "utf8")));
