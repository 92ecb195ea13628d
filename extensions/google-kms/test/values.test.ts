import { describe, expect, it } from "vitest";
import { bytesOf } from "../../../test/support/bytes.ts";
import { refusal } from "../../../test/support/refusal.ts";
import { invalid, invalidArgument } from "../../../test/support/refusals.ts";
import * as google from "../algorithms.ts";
import { checkCrc32c, computeCrc32c, packCrc32c } from "../crc32c.ts";
import { readPage } from "../lists.ts";
import { nameOfVersion } from "../pack.ts";
import { checkCryptoKeyId, checkName, checkResourceId, parseVersionName } from "../resource-names.ts";
import { Purpose, VersionAlgorithm, VersionAlgorithmSchema } from "./enums.ts";

const fields = { purpose: "cryptoKey.purpose", algorithm: "cryptoKey.versionTemplate.algorithm" };

describe("Google's algorithms", () => {
  it("are exactly these, each found by its own name and by ours", () => {
    expect(
      google.googleAlgorithms.map(({ algorithm, own }) => [
        google.nameValue(VersionAlgorithmSchema, algorithm),
        own,
      ]),
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
    for (const one of google.googleAlgorithms) {
      expect(google.findAlgorithm(one.algorithm)).toBe(one);
      const isExternalMu = one.signingInput === "externalMu";
      expect(google.findGoogleAlgorithm(one.own, { isExternalMu })).toBe(one);
      expect(google.requireAlgorithm(one, fields)).toBe(one);
    }
  });

  it("leave out ours that Google does not have", () => {
    expect(google.findGoogleAlgorithm("SLH-DSA-SHAKE-256f")).toBeUndefined();
    expect(google.findGoogleAlgorithm("ECDSA-P256", { isExternalMu: true })).toBeUndefined();
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
      google.requireAlgorithm({ purpose: Purpose[purpose], algorithm: VersionAlgorithm[algorithm] }, fields),
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

type Kind = Parameters<typeof checkName>[0];

const location = "projects/my-project/locations/europe-west3";
const ring = `${location}/keyRings/ring_1`;
const key = `${ring}/cryptoKeys/Key-1`;
const version = `${key}/cryptoKeyVersions/12`;
const job = `${ring}/importJobs/job`;

describe("a resource name", () => {
  const rows: [kind: Kind, text: string][] = [
    ["project", "projects/p"],
    ["location", location],
    ["location", "projects/1234567890/locations/global"],
    ["location", "projects/example.com:p/locations/us-east1"],
    ["location", `projects/p/locations/${"a".repeat(63)}`],
    ["location of the server", "locations/global"],
    ["key ring", ring],
    ["key", key],
    ["version", version],
    ["import job", job],
  ];
  it.each(rows)("of a %s may be %s", (kind, text) => {
    expect(checkName(kind, "name", text)).toBe(text);
  });

  it("of a version has its key's name and its number", () => {
    expect(parseVersionName("name", version)).toEqual({ key, version: 12 });
    expect(nameOfVersion({ name: key, version: 12 })).toBe(version);
  });
});

describe("a name is rejected with its field if it", () => {
  const rows: [what: string, kind: Kind, text: string][] = [
    ["is empty", "location", ""],
    ["is of a shorter kind", "key ring", location],
    ["is of a longer kind", "key ring", key],
    ["has a different collection", "key", job],
    ["has a collection in different case", "key ring", `${location}/keyrings/r`],
    ["begins with a slash", "location", `/${location}`],
    ["ends with a slash", "location", `${location}/`],
    ["is the full name with the service", "location", `//cloudkms.googleapis.com/${location}`],
    ["has an empty ID", "key ring", `${location}/keyRings/`],
    ["has an ID of 64 characters", "key ring", `${location}/keyRings/${"a".repeat(64)}`],
    ["has an ID with a dot", "key", `${ring}/cryptoKeys/a.b`],
    ["has an ID with a space", "key", `${ring}/cryptoKeys/a b`],
    ["has an ID that ends with a line break", "key", `${ring}/cryptoKeys/a\n`],
    ["has an ID with an encoded slash", "key", `${ring}/cryptoKeys/a%2Fb`],
    ["has a location with an uppercase letter", "location", "projects/p/locations/Global"],
    ["has version 0", "version", `${key}/cryptoKeyVersions/0`],
    ["has a version with a leading zero", "version", `${key}/cryptoKeyVersions/01`],
    ["has a version that is not a number", "version", `${key}/cryptoKeyVersions/latest`],
    ["has a negative version", "version", `${key}/cryptoKeyVersions/-1`],
    ["has a version of ten digits", "version", `${key}/cryptoKeyVersions/1234567890`],
  ];
  it.each(rows)("%s", async (_what, kind, text) => {
    expect(await refusal(Promise.try(() => checkName(kind, "parent", text)))).toEqual(invalid("parent"));
  });
});

describe("the ID of a new resource", () => {
  it.each(["a", "A-b_9", "a".repeat(63)])("may be %s", (id) => {
    expect(checkResourceId("keyRingId", id)).toBe(id);
  });

  it.each(["0", "007", "1234567890"])("of a key must not be a number: %s", async (id) => {
    const checking = Promise.try(() => checkCryptoKeyId("cryptoKeyId", id));
    expect(await refusal(checking)).toEqual(invalid("cryptoKeyId"));
    expect(checkResourceId("keyRingId", id)).toBe(id);
    // A key of an earlier release may have such an ID.
    expect(checkName("key", "name", `${ring}/cryptoKeys/${id}`)).toContain(id);
  });

  it.each(["5a", "_5", "-5"])("of a key may contain digits: %s", (id) => {
    expect(checkCryptoKeyId("cryptoKeyId", id)).toBe(id);
  });

  it.each(["", "a".repeat(64), "a/b", "ä", "a\n", "a.b"])("is rejected with its field: %j", async (id) => {
    expect(await refusal(Promise.try(() => checkResourceId("keyRingId", id)))).toEqual(invalid("keyRingId"));
  });
});

const ascending = Uint8Array.from({ length: 32 }, (_, index) => index);

describe("computeCrc32c", () => {
  // RFC 3720, appendix B.4, which prints each CRC's bytes in wire order.
  const rows: [what: string, bytes: Uint8Array, crc: number][] = [
    ["32 bytes of zeroes", new Uint8Array(32), 0x8a9136aa],
    ["32 bytes of ones", new Uint8Array(32).fill(0xff), 0x62a8ab43],
    ["32 bytes of incrementing 00..1f", ascending, 0x46dd794e],
    ["32 bytes of decrementing 1f..00", ascending.toReversed(), 0x113fdb5c],
    // The check value for CRC-32/ISCSI in the catalogue of parametrised CRC algorithms.
    ["123456789", bytesOf("123456789"), 0xe3069283],
    ["nothing", new Uint8Array(), 0],
  ];
  it.each(rows)("of %s", (_what, bytes, crc) => {
    expect(computeCrc32c(bytes)).toBe(crc);
  });
});

describe("checkCrc32c", () => {
  const data = bytesOf("hello");

  it("accepts the right checksum, and verifies nothing without one", () => {
    expect(checkCrc32c("dataCrc32c", data, packCrc32c(data))).toBe(true);
    expect(checkCrc32c("dataCrc32c", data, undefined)).toBe(false);
  });

  it.each([0n, -1n, packCrc32c(data) + 2n ** 32n, packCrc32c(data) ^ 1n])("rejects %i", async (crc) => {
    const checking = Promise.try(() => checkCrc32c("dataCrc32c", data, crc));
    expect(await refusal(checking)).toEqual(invalidArgument("CHECKSUM_MISMATCH", "dataCrc32c"));
  });
});
