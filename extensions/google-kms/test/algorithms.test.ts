import { describe, expect, it } from "vitest";
import {
  CryptoKey_CryptoKeyPurpose as Purpose,
  CryptoKeyVersion_CryptoKeyVersionAlgorithm as VersionAlgorithm,
} from "#gen/google/cloud/kms/v1/resources_pb.ts";
import { failureOf, refusal } from "../../../test/support/refusal.ts";
import { invalid } from "../../../test/support/refusals.ts";
import { findAlgorithm, findGoogleAlgorithm, googleAlgorithms, requireAlgorithm } from "../algorithms.ts";
import { readPage } from "../pages.ts";

const { ASYMMETRIC_SIGN, KEY_ENCAPSULATION } = Purpose;
const fields = { purpose: "cryptoKey.purpose", algorithm: "cryptoKey.versionTemplate.algorithm" };

describe("Google's algorithms", () => {
  const rows: [
    name: keyof typeof VersionAlgorithm,
    own: string,
    purpose: Purpose,
    input: string | undefined,
  ][] = [
    ["PQ_SIGN_ML_DSA_44", "ML-DSA-44", ASYMMETRIC_SIGN, "data"],
    ["PQ_SIGN_ML_DSA_65", "ML-DSA-65", ASYMMETRIC_SIGN, "data"],
    ["PQ_SIGN_ML_DSA_87", "ML-DSA-87", ASYMMETRIC_SIGN, "data"],
    ["PQ_SIGN_ML_DSA_44_EXTERNAL_MU", "ML-DSA-44", ASYMMETRIC_SIGN, "externalMu"],
    ["PQ_SIGN_ML_DSA_65_EXTERNAL_MU", "ML-DSA-65", ASYMMETRIC_SIGN, "externalMu"],
    ["PQ_SIGN_ML_DSA_87_EXTERNAL_MU", "ML-DSA-87", ASYMMETRIC_SIGN, "externalMu"],
    ["PQ_SIGN_SLH_DSA_SHA2_128S", "SLH-DSA-SHA2-128s", ASYMMETRIC_SIGN, "data"],
    ["EC_SIGN_P256_SHA256", "ECDSA-P256", ASYMMETRIC_SIGN, "sha256"],
    ["ML_KEM_768", "ML-KEM-768", KEY_ENCAPSULATION, undefined],
    ["ML_KEM_1024", "ML-KEM-1024", KEY_ENCAPSULATION, undefined],
    ["KEM_XWING", "X-Wing", KEY_ENCAPSULATION, undefined],
  ];

  it("are exactly these", () => {
    expect(googleAlgorithms.map(({ algorithm }) => algorithm)).toEqual(
      rows.map(([name]) => VersionAlgorithm[name]),
    );
  });

  it.each(rows)("map %s to our %s", (name, own, purpose, signingInput) => {
    const found = findAlgorithm(VersionAlgorithm[name]);
    expect(found).toEqual({ algorithm: VersionAlgorithm[name], own, purpose, signingInput });
    const isExternalMu = signingInput === "externalMu";
    expect(found && findGoogleAlgorithm(found.own, { isExternalMu })).toBe(found);
    expect(requireAlgorithm({ purpose, algorithm: VersionAlgorithm[name] }, fields)).toBe(found);
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

  it("list the ones for the purpose if the algorithm does not match it", async () => {
    const creating = Promise.try(() =>
      requireAlgorithm({ purpose: KEY_ENCAPSULATION, algorithm: VersionAlgorithm.PQ_SIGN_ML_DSA_65 }, fields),
    );
    expect((await failureOf(creating)).rawMessage).toBe(
      `${fields.algorithm}: PQ_SIGN_ML_DSA_65 is not supported for KEY_ENCAPSULATION; send one of ML_KEM_768, ML_KEM_1024, KEM_XWING`,
    );
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
