/** Filters and orders of Google's lists, on both databases. */
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { expect, it } from "vitest";
import {
  ImportJob_ImportMethod as Method,
  CryptoKey_CryptoKeyPurpose as Purpose,
  CryptoKeyVersion_CryptoKeyVersionAlgorithm as VersionAlgorithm,
  CryptoKeyVersion_CryptoKeyVersionState as VersionState,
} from "#gen/google/cloud/kms/v1/resources_pb.ts";
import { refusal } from "../../../test/support/refusal.ts";
import { invalid } from "../../../test/support/refusals.ts";
import { describeGoogle, type GoogleKms } from "./google-server.ts";

let count = 0;

/** Creates a location with its own rings. */
async function createLocation(google: GoogleKms, ...rings: string[]): Promise<string> {
  count += 1;
  const parent = `projects/p${count}/locations/global`;
  for (const keyRingId of rings) await google.createKeyRing({ parent, keyRingId });
  return parent;
}

const lastPart = ({ name }: { readonly name: string }): string => name.split("/").at(-1) ?? "";

const kem = {
  purpose: Purpose.KEY_ENCAPSULATION,
  versionTemplate: { algorithm: VersionAlgorithm.ML_KEM_768 },
};

/** Creates a key in a new ring. */
async function createKey(google: GoogleKms) {
  const parent = `${await createLocation(google, "ring")}/keyRings/ring`;
  const { name } = await google.createCryptoKey({ parent, cryptoKeyId: "key", cryptoKey: kem });
  return { parent, name };
}

describeGoogle("a filter on key rings", (shared) => {
  it.each([
    ['name:"ALPH"', ["alpha", "alphabet"]],
    ["name:alphabet OR name:beta", ["alphabet", "beta"]],
    ["name:alpha NOT name:bet", ["alpha"]],
    ["-name:alpha", ["beta"]],
    ['create_time > "2020-01-01T00:00:00Z"', ["alpha", "alphabet", "beta"]],
    ['createTime<"2020-01-01T00:00:00+01:00"', []],
    [" ", ["alpha", "alphabet", "beta"]],
  ])("%s", async (filter, expected) => {
    const { google } = await shared();
    const parent = await createLocation(google, "alpha", "alphabet", "beta");
    const { keyRings, totalSize } = await google.listKeyRings({ parent, filter });
    expect(keyRings.map(lastPart)).toEqual(expected);
    // Google's answers have no total for a filtered list.
    expect(totalSize).toBe(filter === " " ? 3 : 0);
  });

  it("excludes other locations", async () => {
    const { google } = await shared();
    await createLocation(google, "elsewhere");
    const parent = await createLocation(google, "here");
    const { keyRings } = await google.listKeyRings({ parent, filter: "name:e OR name:elsewhere" });
    expect(keyRings.map(lastPart)).toEqual(["here"]);
  });
});

describeGoogle("a filter on keys", (shared) => {
  it("selects by label, purpose, algorithm and name", async () => {
    const { google } = await shared();
    const location = await createLocation(google, "ring");
    const parent = `${location}/keyRings/ring`;
    const create = (cryptoKeyId: string, algorithm: VersionAlgorithm, labels = {}) =>
      google.createCryptoKey({
        parent,
        cryptoKeyId,
        cryptoKey: {
          purpose:
            algorithm === VersionAlgorithm.ML_KEM_768 ? Purpose.KEY_ENCAPSULATION : Purpose.ASYMMETRIC_SIGN,
          versionTemplate: { algorithm },
          labels,
        },
      });
    await create("a", VersionAlgorithm.PQ_SIGN_ML_DSA_44, { team: "alpha", größe: "x" });
    await create("b", VersionAlgorithm.PQ_SIGN_ML_DSA_44_EXTERNAL_MU, { team: "alphabet" });
    await create("c", VersionAlgorithm.ML_KEM_768, { steam: "alpha" });
    const rows: [filter: string, keys: string][] = [
      ["labels.team=alpha", "a"],
      ["labels.team!=alpha", "bc"],
      ["labels.größe=x", "a"],
      ["labels.team:ALPH", "ab"],
      ["labels.team:*", "ab"],
      ["NOT labels.team:*", "c"],
      ["labels.toString:a OR labels.__proto__:a", ""],
      ["labels.team=alpha OR labels.steam=alpha", "ac"],
      ["purpose=ASYMMETRIC_SIGN", "ab"],
      ["purpose=MAC", ""],
      ["NOT purpose=ASYMMETRIC_SIGN", "c"],
      ["versionTemplate.algorithm=PQ_SIGN_ML_DSA_44", "a"],
      ["version_template.algorithm=PQ_SIGN_ML_DSA_44_EXTERNAL_MU", "b"],
      ["version_template.algorithm=RSA_SIGN_PSS_2048_SHA256", ""],
      ["import_only=false", "abc"],
      [`name="${parent}/cryptoKeys/c"`, "c"],
      [`name!="${parent}/cryptoKeys/c" labels.team=alphabet`, "b"],
    ];
    for (const [filter, keys] of rows) {
      const { cryptoKeys } = await google.listCryptoKeys({ parent, filter });
      expect([filter, cryptoKeys.map(lastPart).join("")]).toEqual([filter, keys]);
    }
  });
});

describeGoogle("a filter on versions and import jobs", (shared) => {
  it("selects by state, number, algorithm, method and time", async () => {
    const { google } = await shared();
    const { parent, name: key } = await createKey(google);
    await google.createCryptoKeyVersion({
      parent: key,
      cryptoKeyVersion: { state: VersionState.DISABLED },
    });
    await google.createCryptoKeyVersion({ parent: key });
    const { destroyTime } = await google.destroyCryptoKeyVersion({ name: `${key}/cryptoKeyVersions/1` });
    const at = destroyTime && timestampDate(destroyTime).toISOString();
    const rows: [filter: string, versions: string][] = [
      ["state=ENABLED", "3"],
      ["state!=ENABLED", "12"],
      ["state=DISABLED OR state=DESTROY_SCHEDULED", "12"],
      ["state=DESTROYED", ""],
      ["state=PENDING_IMPORT", ""],
      ["name:cryptoKeyVersions/2", "2"],
      [`name="${key}/cryptoKeyVersions/3"`, "3"],
      ["algorithm=ML_KEM_768 protection_level=SOFTWARE", "123"],
      ["algorithm=ML_KEM_1024", ""],
      ["protectionLevel=HSM", ""],
      [`destroy_time="${at}"`, "1"],
      [`destroy_time<"${at}"`, ""],
      ['destroyTime>"2026-01-01T00:00:00Z"', "1"],
    ];
    for (const [filter, versions] of rows) {
      const { cryptoKeyVersions } = await google.listCryptoKeyVersions({ parent: key, filter });
      expect([filter, cryptoKeyVersions.map(lastPart).join("")]).toEqual([filter, versions]);
    }
    const importMethod = Method.HPKE_KEM_ML_KEM_768_HKDF_SHA256_AES_256_GCM;
    await google.createImportJob({ parent, importJobId: "job", importJob: { importMethod } });
    const jobs: [filter: string, jobs: string][] = [
      ["state=ACTIVE", "job"],
      ["state=EXPIRED", ""],
      ["import_method=HPKE_KEM_ML_KEM_768_HKDF_SHA256_AES_256_GCM", "job"],
      ["importMethod=HPKE_KEM_XWING_HKDF_SHA256_AES_256_GCM", ""],
      ["name:importJobs/job AND -name:other", "job"],
    ];
    for (const [filter, expected] of jobs) {
      const { importJobs } = await google.listImportJobs({ parent, filter });
      expect([filter, importJobs.map(lastPart).join("")]).toEqual([filter, expected]);
    }
  });

  it.each([
    "nope=1",
    "state=NOPE",
    "state=enabled",
    "state:ENABLED",
    "state<ENABLED",
    "name<a",
    "create_time=2026",
    'create_time="2026-01-01"',
    'create_time:"2026-01-01T00:00:00Z"',
    "labels.team=a",
    "labels=a",
    "constructor=1",
    "__proto__=1",
    "key_state=ACTIVE",
    "state=ENABLED)",
  ])("rejects %s", async (filter) => {
    const { google } = await shared();
    const { name: parent } = await createKey(google);
    expect(await refusal(google.listCryptoKeyVersions({ parent, filter }))).toEqual(invalid("filter"));
  });
});

describeGoogle("the order of a list", (shared) => {
  it.each([
    ["create_time", "bca"],
    ["createTime", "bca"],
    ["create_time asc", "bca"],
    ["create_time desc", "acb"],
    [" createTime  desc ", "acb"],
    ["name", "abc"],
    ["name asc", "abc"],
    ["name desc", "cba"],
  ])("can be %j", async (orderBy, expected) => {
    const { google } = await shared();
    const parent = await createLocation(google, "b", "c", "a");
    const { keyRings, totalSize } = await google.listKeyRings({ parent, orderBy });
    expect([keyRings.map(lastPart).join(""), totalSize]).toEqual([expected, 3]);
  });

  it("is rejected if it is long, whatever it contains", async () => {
    const { google } = await shared();
    const parent = await createLocation(google);
    // A backtracking expression over these spaces would take hours.
    const orderBy = `${" ".repeat(1_000_000)}!`;
    await expect(google.listKeyRings({ parent, orderBy })).rejects.toThrow(/orderBy/);
  });

  it("applies to all pages and with a filter, and its tokens are valid only for both", async () => {
    const { google } = await shared();
    const parent = await createLocation(google, "a1", "b1", "a2", "a3", "a4", "a5");
    const list = { parent, filter: "name:keyRings/a", orderBy: "create_time desc", pageSize: 2 };
    const first = await google.listKeyRings(list);
    const second = await google.listKeyRings({ ...list, pageToken: first.nextPageToken });
    const third = await google.listKeyRings({ ...list, pageToken: second.nextPageToken });
    const pages = [first, second, third].map(({ keyRings }) => keyRings.map(lastPart));
    expect([pages, third.nextPageToken]).toEqual([[["a5", "a4"], ["a3", "a2"], ["a1"]], ""]);
    for (const other of [{ orderBy: "" }, { filter: "" }, { filter: "name:keyRings/b" }]) {
      const call = google.listKeyRings({ ...list, ...other, pageToken: first.nextPageToken });
      expect(await refusal(call)).toEqual(invalid("pageToken"));
    }
  });

  it("applies to all pages of names, which are compared byte by byte", async () => {
    const { google } = await shared();
    const parent = await createLocation(google, "b", "A_", "a", "B", "A-", "a-b");
    const read = async (orderBy: string): Promise<string[][]> => {
      const pages: string[][] = [];
      let pageToken = "";
      do {
        const page = await google.listKeyRings({ parent, orderBy, pageSize: 2, pageToken });
        pages.push(page.keyRings.map(lastPart));
        pageToken = page.nextPageToken;
      } while (pageToken !== "");
      return pages;
    };
    expect(await read("name")).toEqual([
      ["A-", "A_"],
      ["B", "a"],
      ["a-b", "b"],
    ]);
    expect(await read("name desc")).toEqual([
      ["b", "a-b"],
      ["a", "B"],
      ["A_", "A-"],
    ]);
  });

  it.each([
    ["create_time desc", "ba21dc"],
    ["name", "ab12cd"],
    ["name desc", "ba21dc"],
  ])("works for versions, keys and import jobs too: %s", async (orderBy, expected) => {
    const { google } = await shared();
    const parent = `${await createLocation(google, "ring")}/keyRings/ring`;
    for (const cryptoKeyId of ["a", "b"])
      await google.createCryptoKey({ parent, cryptoKeyId, cryptoKey: kem });
    await google.createCryptoKeyVersion({ parent: `${parent}/cryptoKeys/a` });
    const importMethod = Method.HPKE_KEM_ML_KEM_768_HKDF_SHA256_AES_256_GCM;
    for (const importJobId of ["c", "d"])
      await google.createImportJob({ parent, importJobId, importJob: { importMethod } });
    const { cryptoKeys } = await google.listCryptoKeys({ parent, orderBy });
    const { cryptoKeyVersions } = await google.listCryptoKeyVersions({
      parent: `${parent}/cryptoKeys/a`,
      orderBy,
    });
    const { importJobs } = await google.listImportJobs({ parent, orderBy });
    expect([...cryptoKeys, ...cryptoKeyVersions, ...importJobs].map(lastPart).join("")).toBe(expected);
  });

  it("sorts versions by number, even if a filter leaves some out", async () => {
    const { google } = await shared();
    const { name } = await createKey(google);
    for (let version = 2; version <= 11; version += 1) await google.createCryptoKeyVersion({ parent: name });
    const cryptoKeyVersion = { name: `${name}/cryptoKeyVersions/11`, state: VersionState.DISABLED };
    await google.updateCryptoKeyVersion({ cryptoKeyVersion, updateMask: { paths: ["state"] } });
    const list = { parent: name, orderBy: "name desc", filter: "state=ENABLED", pageSize: 3 };
    const first = await google.listCryptoKeyVersions(list);
    const second = await google.listCryptoKeyVersions({ ...list, pageToken: first.nextPageToken });
    const versions = [first, second].map(({ cryptoKeyVersions }) => cryptoKeyVersions.map(lastPart));
    expect(versions).toEqual([
      ["10", "9", "8"],
      ["7", "6", "5"],
    ]);
  });

  it.each(["names", "name up", "desc", "create_time down", "nope", "create_time,name"])(
    "rejects %s",
    async (orderBy) => {
      const { google } = await shared();
      const parent = await createLocation(google);
      expect(await refusal(google.listKeyRings({ parent, orderBy }))).toEqual(invalid("orderBy"));
    },
  );
});
