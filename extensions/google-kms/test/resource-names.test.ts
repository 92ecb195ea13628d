import { describe, expect, it } from "vitest";
import { refusal } from "../../../test/support/refusal.ts";
import { invalid } from "../../../test/support/refusals.ts";
import { nameOfVersion } from "../pack.ts";
import { checkCryptoKeyId, checkName, checkResourceId, parseVersionName } from "../resource-names.ts";

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
