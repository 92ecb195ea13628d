/** Runs the files of official vectors. */
import { describe, expect, it } from "vitest";
import type { ProviderName } from "../../src/crypto/provider.ts";
import { describeProviders } from "../support/crypto-providers.ts";
import {
  algorithmOf,
  type Outcome,
  procedures,
  readVectorFile,
  type Vector,
  vectorsFolder,
} from "./procedures.ts";

/** How many tests of a file do not agree with a provider: they accept, they refuse, or no interface has them; see `Outcome`. */
type Others = readonly [accept: number, refuse: number, noInterface: number];

/**
 * The files with such tests. All providers have the same numbers, because one interface decides which tests apply. In
 * other files, every test must agree.
 */
const others: Readonly<Record<string, Others>> = {
  "acvp_mldsa44_siggen.json": [0, 0, 12],
  "acvp_mldsa44_sigver.json": [0, 0, 12],
  "acvp_mldsa65_siggen.json": [0, 0, 12],
  "acvp_mldsa65_sigver.json": [0, 0, 10],
  "acvp_mldsa87_siggen.json": [0, 0, 12],
  "acvp_mldsa87_sigver.json": [0, 0, 11],
  "acvp_mlkem1024_encap.json": [5, 0, 0],
  "acvp_mlkem512_encap.json": [5, 0, 0],
  "acvp_mlkem768_encap.json": [5, 0, 0],
  "bc_hashslhdsa_siggen.json": [0, 0, 6],
  "bc_slhdsa_internal_sigver.json": [0, 0, 10],
  "composite_mldsa.json": [0, 0, 2],
  "rfc_pkcs8_spki_pem.json": [0, 0, 2],
  "wycheproof_aes_gcm.json": [0, 0, 156],
  "wycheproof_aes_kwp.json": [0, 0, 127],
  "wycheproof_hkdf_sha256.json": [0, 0, 42],
  "wycheproof_json_web_key_test.json": [0, 1, 0],
  "wycheproof_json_web_signature_test.json": [0, 23, 0],
  "wycheproof_mlkem_1024_encap.json": [24, 0, 0],
  "wycheproof_mlkem_512_encap.json": [24, 0, 0],
  "wycheproof_mlkem_768_encap.json": [21, 0, 0],
};

/** Slow files: they generate and use keys of the slow SLH-DSA parameter sets. */
export const slowFiles: readonly string[] = ["acvp_slhdsa_keygen.json", "bc_slhdsa_siggen.json"];

/**
 * Whether to run only the fast parameter sets: the native provider delegates SLH-DSA to OpenSSL, so repeating all vectors
 * with the same code would prove nothing more. QSP_TEST_LONG=1 runs them all.
 */
function isShortened(name: ProviderName, file: string): boolean {
  return name === "native" && slowFiles.includes(file) && process.env.QSP_TEST_LONG !== "1";
}

/** Defines a test for each file and provider. */
export function testFiles(files: readonly string[]): void {
  describe.skipIf(vectorsFolder === undefined)(
    "official vectors (QSP_TEST_VECTORS names their folder)",
    () => {
      describeProviders("and %s", (provider, name) => {
        it.each(files)("%s", { timeout: 360_000 }, async (file) => {
          const { algorithm, operation, vectors: all } = readVectorFile(vectorsFolder ?? "", file);
          const isFast = (vector: Vector) => algorithmOf(algorithm, vector).endsWith("f");
          const vectors = isShortened(name, file) ? all.filter(isFast) : all;
          const run = procedures[operation];
          if (run === undefined) throw new Error(`${file} has the unknown operation ${operation}`);
          // The provider limits the concurrency.
          const outcomes = await Promise.all(
            vectors.map((vector) => run(provider, algorithmOf(algorithm, vector), vector)),
          );
          const differing = outcomes.map((outcome, i) => `${vectors[i]?.id}: ${outcome}`);
          expect(differing.filter((text) => text.includes(": differs"))).toEqual([]);
          const count = (outcome: Outcome) => outcomes.filter((each) => each === outcome).length;
          expect(vectors.length).toBeGreaterThan(0);
          expect([count("accepts"), count("refuses"), count("no interface")]).toEqual(
            others[file] ?? [0, 0, 0],
          );
        });
      });
    },
  );
}
