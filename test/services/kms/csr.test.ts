/** CreateCsr: who may create a CSR, what is refused, and what the audit log records. */
import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { outcomeOf, refusal } from "../../support/refusal.ts";
import { invalid, usageRefuses } from "../../support/refusals.ts";
import { present } from "../answers.ts";
import { createKey, describeKms, type KmsClient, readDeeds } from "./kms-server.ts";

type Request = Parameters<KmsClient["createCsr"]>[0];

async function createCsr(kms: KmsClient, request: Request) {
  return present((await kms.createCsr(request)).result);
}

const everyName = {
  subject: "CN=Zoë\\, release,OU=Signing,O=Example,C=DE",
  dnsNames: ["Example.com", "*.example.com"],
  ipAddresses: ["10.0.0.1", "2001:DB8:0::1"],
  emails: ["release@example.com"],
  uris: ["https://example.com/release", "urn:example:release"],
};

/** Invalid names, and the field that the error names. */
const malformed: Record<string, [Partial<typeof everyName>, string]> = {
  "an invalid subject": [{ subject: "release" }, "subject"],
  "a subject with a line break": [{ subject: "CN=a\nO=b" }, "subject"],
  "a subject with an escaped line break": [{ subject: "CN=a\\0AO=b" }, "subject"],
  "a subject with two common names": [{ subject: "CN=a,CN=b" }, "subject"],
  "a subject that is too long": [{ subject: `CN=${"a".repeat(2048)}` }, "subject"],
  "a host name with a NUL": [{ dnsNames: ["a.test", "b.test\0.c.test"] }, "dnsNames[1]"],
  "a wildcard in the middle": [{ dnsNames: ["a.*.test"] }, "dnsNames[0]"],
  "a host name that is an address": [{ dnsNames: ["10.0.0.1"] }, "dnsNames[0]"],
  "an address with a zone": [{ ipAddresses: ["fe80::1%eth0"] }, "ipAddresses[0]"],
  "an invalid address": [{ ipAddresses: ["10.0.0.1", "10.0.0"] }, "ipAddresses[1]"],
  "an email address with a name": [{ emails: ["Ada <ada@example.com>"] }, "emails[0]"],
  "an email address with two dots": [{ emails: ["a..b@example.com"] }, "emails[0]"],
  "a relative URI": [{ uris: ["/release"] }, "uris[0]"],
  "a URI with a bad escape": [{ uris: ["https://example.com/%zz"] }, "uris[0]"],
  "a URI that is too long": [{ uris: [`urn:${"a".repeat(2045)}`] }, "uris[0]"],
  "the same name twice": [{ dnsNames: ["a.test", "a.test"] }, "dnsNames"],
};

describeKms("KmsService.CreateCsr", (start, shared) => {
  it("finds the key by name, and uses the primary version", async () => {
    const { kms } = await shared();
    const name = `csr-${process.pid}-${performance.now()}`.replace(".", "-");
    await kms.createKey({ algorithm: "ML-DSA-44", name });
    const { newKey } = await kms.rotateKey({ keyId: `name/${name}` });
    const { keyId } = await createCsr(kms, { keyId: `name/${name}`, subject: "CN=release" });
    expect(keyId).toBe(newKey?.keyId);
  });

  it("leaves one entry with the SHA-256 of the request, without its names", async () => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms);
    const { csr } = await createCsr(kms, { keyId, ...everyName });
    const digest = createHash("sha256").update(csr).digest("hex");
    expect((await readDeeds(kms, keyId)).slice(1)).toEqual([`SIGN OK input=csr, sha256=${digest}`]);
  });

  it("rejects a key that does not sign, and records the refusal", async () => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms, { algorithm: "ML-KEM-512" });
    expect(await refusal(kms.createCsr({ keyId, subject: "CN=release" }))).toEqual(usageRefuses);
    expect((await readDeeds(kms, keyId)).slice(1)).toEqual(["SIGN REFUSED reason=KEY_USAGE_MISMATCH"]);
  });

  it.each(Object.entries(malformed))("rejects %s, and names the field", async (_what, [fields, field]) => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms);
    expect(await refusal(kms.createCsr({ keyId, ...fields }))).toEqual(invalid(field));
    expect(await readDeeds(kms, keyId)).toHaveLength(1);
  });

  it("rejects a request without any name", async () => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms);
    expect(await refusal(kms.createCsr({ keyId }))).toMatchObject({ reason: "FIELD_INVALID" });
  });

  it("rejects more than 100 names of all kinds together", async () => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms);
    const dnsNames = Array.from({ length: 60 }, (_, i) => `a${i}.test`);
    const emails = Array.from({ length: 41 }, (_, i) => `a${i}@a.test`);
    expect(await refusal(kms.createCsr({ keyId, dnsNames, emails }))).toMatchObject({
      reason: "FIELD_INVALID",
    });
    expect((await createCsr(kms, { keyId, dnsNames, emails: emails.slice(1) })).keyId).toBe(keyId);
  });

  it("returns no CSR that is recorded after the key was destroyed, and records all others", async () => {
    const { kms } = await start();
    const { keyId } = await createKey(kms, { algorithm: "SLH-DSA-SHA2-128f" });
    const requests = Array.from({ length: 8 }, () =>
      outcomeOf(kms.createCsr({ keyId, subject: "CN=release" })),
    );
    await kms.destroyKey({ keyId });
    const outcomes = await Promise.all(requests);
    const deeds = await readDeeds(kms, keyId);
    const destroyed = deeds.findIndex((deed) => deed.startsWith("DESTROY"));
    expect(deeds.slice(destroyed).filter((deed) => deed.startsWith("SIGN OK"))).toEqual([]);
    expect(deeds.filter((deed) => deed.startsWith("SIGN OK"))).toHaveLength(
      outcomes.filter((outcome) => outcome === "answer").length,
    );
  });
});
