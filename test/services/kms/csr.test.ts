/** CreateCsr: who may create a CSR, what is refused, and what the audit log records. */
import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { outcomeOf, refusal } from "../../support/refusal.ts";
import { invalid } from "../../support/refusals.ts";
import { present } from "../answers.ts";
import { createKey, describeKms, readDeeds } from "./kms-server.ts";

const everyName = {
  subject: "CN=Zoë\\, release,OU=Signing,O=Example,C=DE",
  dnsNames: ["Example.com", "*.example.com"],
  ipAddresses: ["10.0.0.1", "2001:DB8:0::1"],
  emails: ["release@example.com"],
  uris: ["https://example.com/release", "urn:example:release"],
};

/** One invalid name of each kind, and the field that the error names. test/crypto has the others. */
const malformed: Record<string, [Partial<typeof everyName>, string]> = {
  "an invalid subject": [{ subject: "release" }, "subject"],
  "a subject that is too long": [{ subject: `CN=${"a".repeat(2048)}` }, "subject"],
  "a host name with a NUL": [{ dnsNames: ["a.test", "b.test\0.c.test"] }, "dnsNames[1]"],
  "an invalid address": [{ ipAddresses: ["10.0.0.1", "10.0.0"] }, "ipAddresses[1]"],
  "an email address with a name": [{ emails: ["Ada <ada@example.com>"] }, "emails[0]"],
  "a relative URI": [{ uris: ["/release"] }, "uris[0]"],
  "a URI that is too long": [{ uris: [`urn:${"a".repeat(2045)}`] }, "uris[0]"],
  "the same name twice": [{ dnsNames: ["a.test", "a.test"] }, "dnsNames"],
};

describeKms("KmsService.CreateCsr", (start, shared) => {
  it("leaves one entry with the SHA-256 of the request, without its names", async () => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms);
    const { csr } = present((await kms.createCsr({ keyId, ...everyName })).result);
    const digest = createHash("sha256").update(csr).digest("hex");
    expect((await readDeeds(kms, keyId)).slice(1)).toEqual([`SIGN OK input=csr, sha256=${digest}`]);
  });

  it.each(Object.entries(malformed))("rejects %s, and names the field", async (_what, [fields, field]) => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms);
    expect(await refusal(kms.createCsr({ keyId, ...fields }))).toEqual(invalid(field));
    expect(await readDeeds(kms, keyId)).toHaveLength(1);
  });

  it("rejects a request without any name, and more than 100 names of all kinds together", async () => {
    const { kms } = await shared();
    const { keyId } = await createKey(kms);
    const dnsNames = Array.from({ length: 60 }, (_, i) => `a${i}.test`);
    const emails = Array.from({ length: 41 }, (_, i) => `a${i}@a.test`);
    for (const fields of [{}, { dnsNames, emails }])
      expect(await refusal(kms.createCsr({ keyId, ...fields }))).toMatchObject({ reason: "FIELD_INVALID" });
    await kms.createCsr({ keyId, dnsNames, emails: emails.slice(1) });
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
