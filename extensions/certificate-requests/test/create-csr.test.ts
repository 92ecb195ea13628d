/** The content of CSRs that CreateCsr returns. */
import { expect, it } from "vitest";
import { compositeNames } from "../../../src/crypto/algorithms.ts";
import { formatAlternativeName } from "../../../src/crypto/alternative-names.ts";
import { formatDistinguishedName } from "../../../src/crypto/distinguished-name.ts";
import { present } from "../../../test/services/answers.ts";
import { createKey, describeKms } from "../../../test/services/kms/kms-server.ts";
import { readRequest } from "./read-request.ts";

const everyName = {
  subject: "CN=Zoë\\, release,OU=Signing,O=Example,C=DE",
  dnsNames: ["Example.com", "*.example.com"],
  ipAddresses: ["10.0.0.1", "2001:DB8:0::1"],
  emails: ["release@example.com"],
  uris: ["https://example.com/release", "urn:example:release"],
};

describeKms("KmsService.CreateCsr", (_start, shared) => {
  it.each([
    "ML-DSA-44",
    "ML-DSA-65",
    "ML-DSA-87",
    "SLH-DSA-SHA2-128f",
    "SLH-DSA-SHAKE-256f",
    ...compositeNames,
  ])("requests a certificate for a %s key, with exactly the given names", async (algorithm) => {
    const { kms } = await shared();
    const key = await createKey(kms, { algorithm });
    const { result } = await kms.createCsr({ keyId: key.keyId, ...everyName });
    const { csr, csrPem, ...about } = present(result);
    const { publicKey, publicKeyPem } = key;
    expect(about).toMatchObject({ keyId: key.keyId, algorithm, publicKey, publicKeyPem });
    const read = await readRequest(csr);
    expect(await readRequest(Buffer.from(csrPem))).toEqual(read);
    expect(formatDistinguishedName(read.subject)).toBe(everyName.subject);
    expect(read.alternativeNames.map(formatAlternativeName)).toEqual([
      "dns:example.com",
      "dns:*.example.com",
      "ip:10.0.0.1",
      "ip:2001:db8::1",
      "email:release@example.com",
      "uri:https://example.com/release",
      "uri:urn:example:release",
    ]);
    expect(read).toMatchObject({ algorithm, otherWishes: [] });
  });
});
