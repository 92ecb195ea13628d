import { describe, expect, it } from "vitest";
import { failureOf, refusal } from "../../../test/support/refusal.ts";
import { invalid } from "../../../test/support/refusals.ts";
import { nameOfVersion } from "../pack.ts";
import {
  type CryptoKeyVersionName,
  checkCryptoKeyId,
  checkResourceId,
  formatCryptoKeyName,
  formatImportJobName,
  formatKeyRingName,
  formatLocationName,
  parseCryptoKeyName,
  parseCryptoKeyVersionName,
  parseImportJobName,
  parseKeyRingName,
  parseLocationName,
} from "../resource-names.ts";

const location = "projects/my-project/locations/europe-west3";
const ring = `${location}/keyRings/ring_1`;
const key = `${ring}/cryptoKeys/Key-1`;
const version = `${key}/cryptoKeyVersions/12`;
const job = `${ring}/importJobs/job`;
const parts = { project: "my-project", location: "europe-west3" };
const inRing = { ...parts, keyRing: "ring_1" };
const inKey = { ...inRing, cryptoKey: "Key-1" };
const formatVersion = (name: CryptoKeyVersionName) =>
  nameOfVersion({ name: formatCryptoKeyName(name), version: name.version });

describe("a resource name", () => {
  const rows = [
    ["location", location, parts, parseLocationName, formatLocationName],
    ["key ring", ring, inRing, parseKeyRingName, formatKeyRingName],
    ["key", key, inKey, parseCryptoKeyName, formatCryptoKeyName],
    ["version", version, { ...inKey, version: 12 }, parseCryptoKeyVersionName, formatVersion],
    ["import job", job, { ...inRing, importJob: "job" }, parseImportJobName, formatImportJobName],
  ] as const;
  it.each(rows)("of a %s is parsed and formatted", (_kind, text, parsed, parse, format) => {
    expect(parse("name", text)).toEqual(parsed);
    expect(format(parsed as never)).toBe(text);
  });

  it.each([
    "projects/1234567890/locations/global",
    "projects/example.com:p/locations/us-east1",
    `projects/p/locations/${"a".repeat(63)}`,
  ])("may be %s", (text) => {
    expect(formatLocationName(parseLocationName("parent", text))).toBe(text);
  });
});

describe("a name is rejected with its field if it", () => {
  const rows: [what: string, parse: (field: string, text: string) => unknown, text: string][] = [
    ["is empty", parseLocationName, ""],
    ["is of a shorter kind", parseKeyRingName, location],
    ["is of a longer kind", parseKeyRingName, key],
    ["has a different collection", parseCryptoKeyName, job],
    ["has a collection in different case", parseKeyRingName, `${location}/keyrings/r`],
    ["begins with a slash", parseLocationName, `/${location}`],
    ["ends with a slash", parseLocationName, `${location}/`],
    ["is the full name with the service", parseLocationName, `//cloudkms.googleapis.com/${location}`],
    ["has an empty ID", parseKeyRingName, `${location}/keyRings/`],
    ["has an ID of 64 characters", parseKeyRingName, `${location}/keyRings/${"a".repeat(64)}`],
    ["has an ID with a dot", parseCryptoKeyName, `${ring}/cryptoKeys/a.b`],
    ["has an ID with a space", parseCryptoKeyName, `${ring}/cryptoKeys/a b`],
    ["has an ID that ends with a line break", parseCryptoKeyName, `${ring}/cryptoKeys/a\n`],
    ["has an ID with an encoded slash", parseCryptoKeyName, `${ring}/cryptoKeys/a%2Fb`],
    ["has a location with an uppercase letter", parseLocationName, "projects/p/locations/Global"],
    ["has version 0", parseCryptoKeyVersionName, `${key}/cryptoKeyVersions/0`],
    ["has a version with a leading zero", parseCryptoKeyVersionName, `${key}/cryptoKeyVersions/01`],
    ["has a version that is not a number", parseCryptoKeyVersionName, `${key}/cryptoKeyVersions/latest`],
    ["has a negative version", parseCryptoKeyVersionName, `${key}/cryptoKeyVersions/-1`],
    ["has a version of ten digits", parseCryptoKeyVersionName, `${key}/cryptoKeyVersions/1234567890`],
  ];
  it.each(rows)("%s", async (_what, parse, text) => {
    expect(await refusal(Promise.try(() => parse("parent", text)))).toEqual(invalid("parent"));
  });

  it("and the message has the reason and the valid form", async () => {
    const parsing = Promise.try(() => parseCryptoKeyVersionName("name", `${key}/cryptoKeyVersions/0`));
    expect((await failureOf(parsing)).rawMessage).toBe(
      'name: "0" after cryptoKeyVersions must be a number from 1 to 999999999; the form is ' +
        '"projects/*/locations/*/keyRings/*/cryptoKeys/*/cryptoKeyVersions/*"',
    );
  });
});

describe("the ID of a new resource", () => {
  it.each(["a", "A-b_9", "a".repeat(63)])("may be %s", (id) => {
    expect(checkResourceId("keyRingId", id)).toBe(id);
  });

  it.each(["0", "5", "007", "1234567890"])("of a key must not be a number: %s", async (id) => {
    const checking = Promise.try(() => checkCryptoKeyId("cryptoKeyId", id));
    expect(await refusal(checking)).toEqual(invalid("cryptoKeyId"));
    expect(checkResourceId("keyRingId", id)).toBe(id);
    // A key of an earlier release may have such an ID.
    expect(parseCryptoKeyName("name", `${ring}/cryptoKeys/${id}`).cryptoKey).toBe(id);
  });

  it.each(["5a", "_5", "v-5", "-5"])("of a key may contain digits: %s", (id) => {
    expect(checkCryptoKeyId("cryptoKeyId", id)).toBe(id);
  });

  it.each(["", "a".repeat(64), "a/b", "ä", "a\n", "a.b"])("is rejected with its field: %j", async (id) => {
    expect(await refusal(Promise.try(() => checkResourceId("keyRingId", id)))).toEqual(invalid("keyRingId"));
  });
});
