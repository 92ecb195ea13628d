import { describe, expect, it } from "vitest";
import {
  CryptoKey_CryptoKeyPurpose as Purpose,
  CryptoKeyVersion_CryptoKeyVersionAlgorithm as VersionAlgorithm,
  CryptoKeyVersion_CryptoKeyVersionAlgorithmSchema as VersionAlgorithmSchema,
} from "#gen/google/cloud/kms/v1/resources_pb.ts";
import { refusal } from "../../../test/support/refusal.ts";
import { invalid } from "../../../test/support/refusals.ts";
import {
  findAlgorithm,
  findGoogleAlgorithm,
  googleAlgorithms,
  nameValue,
  requireAlgorithm,
} from "../algorithms.ts";
import { readPage } from "../lists.ts";

const fields = { purpose: "cryptoKey.purpose", algorithm: "cryptoKey.versionTemplate.algorithm" };

describe("Google's algorithms", () => {
  it("are exactly these, each found by its own name and by ours", () => {
    expect(
      googleAlgorithms.map(({ algorithm, own }) => [nameValue(VersionAlgorithmSchema, algorithm), own]),
    ).toEqual([
      ["PQ_SIGN_ML_DSA_44", "ML-DSA-44"],
      ["PQ_SIGN_ML_DSA_65", "ML-DSA-65"],
      ["PQ_SIGN_ML_DSA_87", "ML-DSA-87"],
      ["PQ_SIGN_ML_DSA_44_EXTERNAL_MU", "ML-DSA-44"],
      ["PQ_SIGN_ML_DSA_65_EXTERNAL_MU", "ML-DSA-65"],
      ["PQ_SIGN_ML_DSA_87_EXTERNAL_MU", "ML-DSA-87"],
      ["PQ_SIGN_SLH_DSA_SHA2_128S", "SLH-DSA-SHA2-128s"],
      ["EC_SIGN_P256_SHA256", "ECDSA-P256"],
      ["ML_KEM_768", "ML-KEM-768"],
      ["ML_KEM_1024", "ML-KEM-1024"],
      ["KEM_XWING", "X-Wing"],
    ]);
    for (const one of googleAlgorithms) {
      expect(findAlgorithm(one.algorithm)).toBe(one);
      const isExternalMu = one.signingInput === "externalMu";
      expect(findGoogleAlgorithm(one.own, { isExternalMu })).toBe(one);
      expect(requireAlgorithm(one, fields)).toBe(one);
    }
  });

  it("leave out ours that Google does not have", () => {
    expect(findGoogleAlgorithm("SLH-DSA-SHAKE-256f")).toBeUndefined();
    expect(findGoogleAlgorithm("ECDSA-P256", { isExternalMu: true })).toBeUndefined();
  });

  const refused: [purpose: keyof typeof Purpose, algorithm: keyof typeof VersionAlgorithm, field: string][] =
    [
      ["ENCRYPT_DECRYPT", "GOOGLE_SYMMETRIC_ENCRYPTION", fields.purpose],
      ["MAC", "HMAC_SHA256", fields.purpose],
      ["CRYPTO_KEY_PURPOSE_UNSPECIFIED", "PQ_SIGN_ML_DSA_65", fields.purpose],
      ["ASYMMETRIC_SIGN", "RSA_SIGN_PSS_2048_SHA256", fields.algorithm],
      ["ASYMMETRIC_SIGN", "ML_KEM_768", fields.algorithm],
      ["ASYMMETRIC_SIGN", "CRYPTO_KEY_VERSION_ALGORITHM_UNSPECIFIED", fields.algorithm],
      ["KEY_ENCAPSULATION", "PQ_SIGN_ML_DSA_65", fields.algorithm],
    ];
  it.each(refused)("reject a key for %s with %s and name the field", async (purpose, algorithm, field) => {
    const creating = Promise.try(() =>
      requireAlgorithm({ purpose: Purpose[purpose], algorithm: VersionAlgorithm[algorithm] }, fields),
    );
    expect(await refusal(creating)).toEqual(invalid(field));
  });
});

describe("a page of a list", () => {
  it.each([
    [0, 100],
    [1, 1],
    [1000, 1000],
    [5000, 1000],
  ])("of size %i has at most %i rows", (pageSize, limit) => {
    expect(readPage({ pageSize, pageToken: "" }, "keys of r")).toEqual({ limit, after: 0 });
  });

  it("is rejected with a negative size, and with a different list's token", async () => {
    const read = (pageSize: number, pageToken: string) =>
      refusal(Promise.try(() => readPage({ pageSize, pageToken }, "keys of r")));
    expect(await read(-1, "")).toEqual(invalid("pageSize"));
    expect(await read(0, "other")).toEqual(invalid("pageToken"));
  });
});
