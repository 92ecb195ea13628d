/** The files of official vectors, and the expected outcome of each. */
import { describe, expect, it } from "vitest";
import type { CryptoProvider } from "../../src/crypto/provider.ts";
import { describeProviders } from "../support/crypto-providers.ts";
import { algorithmOf, type Outcome, procedures } from "./procedures.ts";
import { readVectorFile, vectorsFolder } from "./vector-files.ts";

/** Number of tests in a file that agree, accept, refuse, and have no interface; see `Outcome`. */
type Counts = readonly [agree: number, accept: number, refuse: number, noInterface: number];

/**
 * Every file of the folder. All providers have the same numbers, because one interface decides which tests apply. A new
 * file, or a different number of tests, fails. `expectedOfDelegate` has the exception.
 */
export const expectedOutcomes: Readonly<Record<string, Counts>> = {
  "acvp_mldsa44_keygen.json": [4, 0, 0, 0],
  "acvp_mldsa44_siggen.json": [12, 0, 0, 12],
  "acvp_mldsa44_sigver.json": [4, 0, 0, 12],
  "acvp_mldsa65_keygen.json": [4, 0, 0, 0],
  "acvp_mldsa65_siggen.json": [12, 0, 0, 12],
  "acvp_mldsa65_sigver.json": [4, 0, 0, 10],
  "acvp_mldsa87_keygen.json": [4, 0, 0, 0],
  "acvp_mldsa87_siggen.json": [12, 0, 0, 12],
  "acvp_mldsa87_sigver.json": [4, 0, 0, 11],
  "acvp_mlkem1024_decap-dk.json": [5, 0, 0, 0],
  "acvp_mlkem1024_dk-check.json": [5, 0, 0, 0],
  "acvp_mlkem1024_ek-check.json": [5, 0, 0, 0],
  "acvp_mlkem1024_encap.json": [0, 5, 0, 0],
  "acvp_mlkem1024_keygen.json": [4, 0, 0, 0],
  "acvp_mlkem512_decap-dk.json": [5, 0, 0, 0],
  "acvp_mlkem512_dk-check.json": [5, 0, 0, 0],
  "acvp_mlkem512_ek-check.json": [5, 0, 0, 0],
  "acvp_mlkem512_encap.json": [0, 5, 0, 0],
  "acvp_mlkem512_keygen.json": [4, 0, 0, 0],
  "acvp_mlkem768_decap-dk.json": [5, 0, 0, 0],
  "acvp_mlkem768_dk-check.json": [5, 0, 0, 0],
  "acvp_mlkem768_ek-check.json": [5, 0, 0, 0],
  "acvp_mlkem768_encap.json": [0, 5, 0, 0],
  "acvp_mlkem768_keygen.json": [4, 0, 0, 0],
  "acvp_slhdsa_keygen.json": [48, 0, 0, 0],
  "bc_hashslhdsa_siggen.json": [0, 0, 0, 6],
  "bc_slhdsa_internal_sigver.json": [0, 0, 0, 10],
  "bc_slhdsa_siggen.json": [12, 0, 0, 0],
  "cctv_mlkem.json": [4, 0, 0, 0],
  "cctv_mlkem_modulus.json": [39, 0, 0, 0],
  "composite_mldsa.json": [2, 0, 0, 2],
  "rfc9964_jws.json": [2, 0, 0, 0],
  "rfc_pkcs8_spki_pem.json": [22, 0, 0, 2],
  "wycheproof_aes_gcm.json": [0, 0, 0, 156],
  "wycheproof_aes_kwp.json": [0, 0, 0, 127],
  "wycheproof_ecdsa_p256_sha256_der.json": [244, 0, 0, 0],
  "wycheproof_ecdsa_p256_sha256_p1363.json": [131, 0, 0, 0],
  "wycheproof_hkdf_sha256.json": [0, 0, 0, 42],
  "wycheproof_json_web_key_test.json": [13, 0, 1, 0],
  "wycheproof_json_web_signature_test.json": [176, 0, 23, 0],
  "wycheproof_mldsa_44_sign_noseed.json": [24, 0, 0, 0],
  "wycheproof_mldsa_44_sign_seed.json": [28, 0, 0, 0],
  "wycheproof_mldsa_44_verify.json": [56, 0, 0, 0],
  "wycheproof_mldsa_65_sign_noseed.json": [22, 0, 0, 0],
  "wycheproof_mldsa_65_sign_seed.json": [39, 0, 0, 0],
  "wycheproof_mldsa_65_verify.json": [59, 0, 0, 0],
  "wycheproof_mldsa_87_sign_noseed.json": [26, 0, 0, 0],
  "wycheproof_mldsa_87_sign_seed.json": [38, 0, 0, 0],
  "wycheproof_mldsa_87_verify.json": [61, 0, 0, 0],
  "wycheproof_mlkem_1024_decap-dk.json": [2, 0, 0, 0],
  "wycheproof_mlkem_1024_decap-seed.json": [55, 0, 0, 0],
  "wycheproof_mlkem_1024_encap.json": [22, 24, 0, 0],
  "wycheproof_mlkem_1024_keyGen.json": [4, 0, 0, 0],
  "wycheproof_mlkem_512_decap-dk.json": [2, 0, 0, 0],
  "wycheproof_mlkem_512_decap-seed.json": [55, 0, 0, 0],
  "wycheproof_mlkem_512_encap.json": [20, 24, 0, 0],
  "wycheproof_mlkem_512_keyGen.json": [4, 0, 0, 0],
  "wycheproof_mlkem_768_decap-dk.json": [7, 0, 0, 0],
  "wycheproof_mlkem_768_decap-seed.json": [54, 0, 0, 0],
  "wycheproof_mlkem_768_encap.json": [22, 21, 0, 0],
  "wycheproof_mlkem_768_keyGen.json": [4, 0, 0, 0],
};

/** Slow files: they generate and use keys of the slow SLH-DSA parameter sets. */
export const slowFiles: readonly string[] = ["acvp_slhdsa_keygen.json", "bc_slhdsa_siggen.json"];

/**
 * Outcomes with the native provider, which delegates SLH-DSA to OpenSSL: repeating all vectors with the same code would
 * prove nothing more. The fast parameter sets show that every call reaches OpenSSL. QSP_TEST_LONG=1 runs them all.
 */
const expectedOfDelegate: Readonly<Record<string, Counts>> = {
  "acvp_slhdsa_keygen.json": [24, 0, 0, 0],
  "bc_slhdsa_siggen.json": [4, 0, 0, 0],
};

/** Defines a test for each file and provider. */
export function testFiles(files: readonly string[]): void {
  describe.skipIf(vectorsFolder === undefined)(
    "official vectors (QSP_TEST_VECTORS names their folder)",
    () => {
      describeProviders("and %s", (provider, name) => {
        it.each(files)("%s", { timeout: 360_000 }, async (file) => {
          const delegated =
            name === "native" && process.env.QSP_TEST_LONG !== "1" ? expectedOfDelegate[file] : undefined;
          const { differing, counts } = await runFile(provider, file, {
            onlyFastSets: delegated !== undefined,
          });
          expect(differing).toEqual([]);
          expect(counts).toEqual(delegated ?? expectedOutcomes[file]);
        });
      });
    },
  );
}

/** Runs all tests of a file concurrently; the provider limits the concurrency. */
async function runFile(
  provider: CryptoProvider,
  file: string,
  { onlyFastSets }: { readonly onlyFastSets: boolean },
) {
  const { algorithm, operation, vectors: all } = readVectorFile(vectorsFolder ?? "", file);
  const vectors = onlyFastSets ? all.filter((vector) => algorithmOf(algorithm, vector).endsWith("f")) : all;
  const run = procedures[operation];
  if (run === undefined) throw new Error(`${file} has the unknown operation ${operation}`);
  const outcomes = await Promise.all(
    vectors.map((vector) => run(provider, algorithmOf(algorithm, vector), vector)),
  );
  const count = (outcome: Outcome) => outcomes.filter((each) => each === outcome).length;
  const differing = outcomes.flatMap((outcome, i) =>
    outcome.startsWith("differs") ? [`${vectors[i]?.id}: ${outcome}`] : [],
  );
  return { differing, counts: [count("agrees"), count("accepts"), count("refuses"), count("no interface")] };
}
