/** Filters and orders of Google's lists. */
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { describeRefusal, refusal } from "../../../test/support/refusal.ts";
import { invalid } from "../../../test/support/refusals.ts";
import { type Filter, parseFilter } from "../filter-syntax.ts";
import { Purpose, VersionAlgorithm, VersionState } from "./enums.ts";
import {
  createJob,
  createKey,
  createLocation,
  createRing,
  describeGoogle,
  google,
  idsOf,
  kem,
} from "./google-server.ts";

/** Filters, and the IDs that they find in one list. */
type Rows = Readonly<Record<string, string>>;

async function expectFound(rows: Rows, list: (filter: string) => Promise<{ readonly name: string }[]>) {
  const found: Record<string, string> = {};
  for (const filter of Object.keys(rows)) found[filter] = idsOf(await list(filter)).join("");
  expect(found).toEqual(rows);
}

describeGoogle("a filter on key rings", () => {
  it.each([
    ['name:"ALPH"', ["alpha", "alphabet"]],
    ["name:alphabet OR name:beta", ["alphabet", "beta"]],
    ["name:alpha NOT name:bet", ["alpha"]],
    ["-name:alpha", ["beta"]],
    ['create_time > "2020-01-01T00:00:00Z"', ["alpha", "alphabet", "beta"]],
    ['createTime<"2020-01-01T00:00:00+01:00"', []],
    [" ", ["alpha", "alphabet", "beta"]],
  ])("finds only rings of its location: %s", async (filter, expected) => {
    const [parent = ""] = await Promise.all([1, 2].map(() => createLocation("alpha", "alphabet", "beta")));
    const { keyRings, totalSize } = await google.listKeyRings({ parent, filter });
    expect(idsOf(keyRings)).toEqual(expected);
    // Google's answers have no total for a filtered list.
    expect(totalSize).toBe(filter === " " ? 3 : 0);
  });
});

describeGoogle("a filter", () => {
  it("selects keys by label, purpose, algorithm and name", async () => {
    const parent = await createRing();
    const create = (cryptoKeyId: string, cryptoKey: object) =>
      google.createCryptoKey({ parent, cryptoKeyId, cryptoKey });
    const signing = (algorithm: VersionAlgorithm) => ({
      purpose: Purpose.ASYMMETRIC_SIGN,
      versionTemplate: { algorithm },
    });
    const { PQ_SIGN_ML_DSA_44, PQ_SIGN_ML_DSA_44_EXTERNAL_MU } = VersionAlgorithm;
    await create("a", { ...signing(PQ_SIGN_ML_DSA_44), labels: { team: "alpha", größe: "x" } });
    await create("b", { ...signing(PQ_SIGN_ML_DSA_44_EXTERNAL_MU), labels: { team: "alphabet" } });
    await create("c", { ...kem, labels: { steam: "alpha" } });
    const rows = {
      "labels.team=alpha": "a",
      "labels.team!=alpha": "bc",
      "labels.größe=x": "a",
      "labels.team:ALPH": "ab",
      "labels.team:*": "ab",
      "NOT labels.team:*": "c",
      "labels.toString:a OR labels.__proto__:a": "",
      "labels.team=alpha OR labels.steam=alpha": "ac",
      "purpose=ASYMMETRIC_SIGN": "ab",
      "purpose=MAC": "",
      "NOT purpose=ASYMMETRIC_SIGN": "c",
      "versionTemplate.algorithm=PQ_SIGN_ML_DSA_44": "a",
      "version_template.algorithm=PQ_SIGN_ML_DSA_44_EXTERNAL_MU": "b",
      "version_template.algorithm=RSA_SIGN_PSS_2048_SHA256": "",
      "import_only=false": "abc",
      [`name="${parent}/cryptoKeys/c"`]: "c",
      [`name!="${parent}/cryptoKeys/c" labels.team=alphabet`]: "b",
    };
    await expectFound(rows, async (filter) => (await google.listCryptoKeys({ parent, filter })).cryptoKeys);
  });

  it("selects versions by state, number, algorithm and time", async () => {
    const parent = await createKey();
    const cryptoKeyVersion = { state: VersionState.DISABLED };
    await google.createCryptoKeyVersion({ parent, cryptoKeyVersion });
    await google.createCryptoKeyVersion({ parent });
    const { destroyTime } = await google.destroyCryptoKeyVersion({ name: `${parent}/cryptoKeyVersions/1` });
    const at = destroyTime && timestampDate(destroyTime).toISOString();
    const rows = {
      "state=ENABLED": "3",
      "state!=ENABLED": "12",
      "state=DISABLED OR state=DESTROY_SCHEDULED": "12",
      "state=DESTROYED": "",
      "state=PENDING_IMPORT": "",
      "name:cryptoKeyVersions/2": "2",
      [`name="${parent}/cryptoKeyVersions/3"`]: "3",
      "algorithm=ML_KEM_768 protection_level=SOFTWARE": "123",
      "algorithm=ML_KEM_1024": "",
      "protectionLevel=HSM": "",
      [`destroy_time="${at}"`]: "1",
      [`destroy_time<"${at}"`]: "",
      'destroyTime>"2026-01-01T00:00:00Z"': "1",
    };
    const list = (filter: string) => google.listCryptoKeyVersions({ parent, filter });
    await expectFound(rows, async (filter) => (await list(filter)).cryptoKeyVersions);
  });

  it("selects import jobs by state, method and name", async () => {
    const parent = await createRing();
    await createJob(parent);
    const rows = {
      "state=ACTIVE": "job",
      "state=EXPIRED": "",
      "import_method=HPKE_KEM_XWING_HKDF_SHA256_AES_256_GCM": "job",
      "importMethod=HPKE_KEM_ML_KEM_768_HKDF_SHA256_AES_256_GCM": "",
      "name:importJobs/job AND -name:other": "job",
    };
    await expectFound(rows, async (filter) => (await google.listImportJobs({ parent, filter })).importJobs);
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
  ])("on versions is rejected: %s", async (filter) => {
    const parent = await createKey();
    expect(await refusal(google.listCryptoKeyVersions({ parent, filter }))).toEqual(invalid("filter"));
  });
});

describeGoogle("the order of a list", () => {
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
    const parent = await createLocation("b", "c", "a");
    const { keyRings, totalSize } = await google.listKeyRings({ parent, orderBy });
    expect([idsOf(keyRings).join(""), totalSize]).toEqual([expected, 3]);
  });

  it("is rejected if it is long, whatever it contains", async () => {
    const parent = await createLocation();
    // A backtracking expression over these spaces would take hours.
    const orderBy = `${" ".repeat(1_000_000)}!`;
    await expect(google.listKeyRings({ parent, orderBy })).rejects.toThrow(/orderBy/);
  });

  it("applies to all pages and with a filter, and its tokens are valid only for both", async () => {
    const parent = await createLocation("a1", "b1", "a2", "a3", "a4", "a5");
    const list = { parent, filter: "name:keyRings/a", orderBy: "create_time desc", pageSize: 2 };
    const first = await google.listKeyRings(list);
    const second = await google.listKeyRings({ ...list, pageToken: first.nextPageToken });
    const third = await google.listKeyRings({ ...list, pageToken: second.nextPageToken });
    const pages = [first, second, third].map(({ keyRings }) => idsOf(keyRings));
    expect([pages, third.nextPageToken]).toEqual([[["a5", "a4"], ["a3", "a2"], ["a1"]], ""]);
    for (const other of [{ orderBy: "" }, { filter: "" }, { filter: "name:keyRings/b" }]) {
      const call = google.listKeyRings({ ...list, ...other, pageToken: first.nextPageToken });
      expect(await refusal(call)).toEqual(invalid("pageToken"));
    }
  });

  it.each([
    ["name", ["A- A_", "B a", "a-b b"]],
    ["name desc", ["b a-b", "a B", "A_ A-"]],
  ])("applies to all pages of names, which are compared byte by byte: %s", async (orderBy, expected) => {
    const parent = await createLocation("b", "A_", "a", "B", "A-", "a-b");
    const pages: string[] = [];
    let pageToken = "";
    do {
      const page = await google.listKeyRings({ parent, orderBy, pageSize: 2, pageToken });
      pages.push(idsOf(page.keyRings).join(" "));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(pages).toEqual(expected);
  });

  it.each([
    ["create_time desc", "ba21dc"],
    ["name", "ab12cd"],
    ["name desc", "ba21dc"],
  ])("works for versions, keys and import jobs too: %s", async (orderBy, expected) => {
    const parent = await createRing();
    for (const cryptoKeyId of ["a", "b"])
      await google.createCryptoKey({ parent, cryptoKeyId, cryptoKey: kem });
    const key = `${parent}/cryptoKeys/a`;
    await google.createCryptoKeyVersion({ parent: key });
    for (const id of ["c", "d"]) await createJob(parent, id);
    const { cryptoKeys } = await google.listCryptoKeys({ parent, orderBy });
    const { cryptoKeyVersions } = await google.listCryptoKeyVersions({ parent: key, orderBy });
    const { importJobs } = await google.listImportJobs({ parent, orderBy });
    expect(idsOf([...cryptoKeys, ...cryptoKeyVersions, ...importJobs]).join("")).toBe(expected);
  });

  it("sorts versions by number, even if a filter leaves some out", async () => {
    const parent = await createKey();
    for (let version = 2; version <= 11; version += 1) await google.createCryptoKeyVersion({ parent });
    const cryptoKeyVersion = { name: `${parent}/cryptoKeyVersions/11`, state: VersionState.DISABLED };
    await google.updateCryptoKeyVersion({ cryptoKeyVersion, updateMask: { paths: ["state"] } });
    const list = { parent, orderBy: "name desc", filter: "state=ENABLED", pageSize: 3 };
    const first = await google.listCryptoKeyVersions(list);
    const second = await google.listCryptoKeyVersions({ ...list, pageToken: first.nextPageToken });
    const versions = [first, second].map(({ cryptoKeyVersions }) => idsOf(cryptoKeyVersions).join(" "));
    expect(versions).toEqual(["10 9 8", "7 6 5"]);
  });

  const wrong = ["names", "name up", "desc", "create_time down", "nope", "create_time,name"];
  it.each(wrong)("rejects %s", async (orderBy) => {
    const parent = await createLocation();
    expect(await refusal(google.listKeyRings({ parent, orderBy }))).toEqual(invalid("orderBy"));
  });
});

/** Formats a filter with all brackets. */
function write(filter: Filter): string {
  if (filter.kind === "comparison") return `${filter.field}${filter.operator}${JSON.stringify(filter.value)}`;
  if (filter.kind === "not") return `not(${write(filter.of)})`;
  return `${filter.kind}(${filter.of.map(write).join(",")})`;
}

describe("a filter", () => {
  it.each([
    ["state=ENABLED", 'state="ENABLED"'],
    [' state = "ENABLED" ', 'state="ENABLED"'],
    ["a=1 AND b=2", 'and(a="1",b="2")'],
    ["a=1 b=2", 'and(a="1",b="2")'],
    ["a=1 OR b=2", 'or(a="1",b="2")'],
    ["a=1 AND b=2 OR c=3", 'and(a="1",or(b="2",c="3"))'],
    ["a=1 OR b=2 c=3", 'and(or(a="1",b="2"),c="3")'],
    ["(a=1 AND b=2) OR c=3", 'or(and(a="1",b="2"),c="3")'],
    ["NOT a=1", 'not(a="1")'],
    ["-a=1", 'not(a="1")'],
    ["-(a=1 OR b=2)", 'not(or(a="1",b="2"))'],
    ["NOT (a=1)", 'not(a="1")'],
    ['a!="b c"', 'a!="b c"'],
    ['a:"x\\"y\\\\z"', 'a:"x\\"y\\\\z"'],
    ["a>=1 a=>2 a<=3 a<4 a>5", 'and(a>="1",a>="2",a<="3",a<"4",a>"5")'],
    ["labels.team=alpha-1", 'labels.team="alpha-1"'],
    ["labels.größe=-x", 'labels.größe="-x"'],
    ["name:projects/p/locations/l", 'name:"projects/p/locations/l"'],
    ["a=AND", 'a="AND"'],
    ['a=""', 'a=""'],
    ["a=-", 'a="-"'],
  ])("%s parses as %s", (text, written) => {
    expect(write(parseFilter(text))).toBe(written);
  });

  it.each([
    "state",
    "state=",
    "=ENABLED",
    "AND",
    "a=1 AND",
    "a=1 OR",
    "a=1 OR OR b=2",
    "NOT NOT a=1",
    "-",
    "(",
    "()",
    "(a=1",
    "a=1)",
    '"a"=1',
    'a="x',
    'a=x"y"',
    "a=1 b",
    "a!1",
    "a=(1)",
  ])("rejects %s", (text) => {
    expect(refusalOf(text)).toEqual(invalid("filter"));
  });

  it.each([
    ["characters", `a=${"x".repeat(2000)}`],
    ["words", Array.from({ length: 34 }, () => "a=1").join(" ")],
    ["brackets", `${"(".repeat(10)}a=1${")".repeat(10)}`],
    ["opening brackets", "(".repeat(1999)],
    ["quotes", '"'.repeat(1999)],
    ["backslashes", `a="${"\\".repeat(1999)}`],
    ["spaces", `a=1${" ".repeat(1000)}\0${" ".repeat(900)}=`],
  ])("rejects too many %s", (_what, text) => {
    expect(refusalOf(text)).toEqual(invalid("filter"));
  });
});

function refusalOf(text: string) {
  try {
    return write(parseFilter(text));
  } catch (error) {
    return describeRefusal(error as never);
  }
}
