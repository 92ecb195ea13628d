/** CreateCsr: who may create a CSR, what is refused, and what the audit log records. */
import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { outcomeOf } from "../../support/refusal.ts";
import { present } from "../answers.ts";
import { describeKms, readDeeds, withKey } from "./kms-server.ts";

/** 100 names of all kinds, the most that are allowed. */
const everyName = {
  subject: "CN=Zoë\\, release,OU=Signing,O=Example,C=DE",
  dnsNames: ["*.example.com", ...Array.from({ length: 92 }, (_, i) => `a${i}.Example.com`)],
  ipAddresses: ["10.0.0.1", "2001:DB8:0::1"],
  emails: ["release@example.com"],
  uris: ["https://example.com/release", "urn:example:release", "urn:1", "urn:2"],
};

describeKms("KmsService.CreateCsr", (start, shared) => {
  it("leaves one entry with the SHA-256 of the request, without its names", async () => {
    const { kms, keyId } = await withKey(shared());
    const { csr } = present((await kms.createCsr({ keyId, ...everyName })).result);
    const digest = createHash("sha256").update(csr).digest("hex");
    expect((await readDeeds(kms, keyId)).slice(1)).toEqual([`SIGN OK input=csr, sha256=${digest}`]);
  });

  it("returns no CSR that is recorded after the key was destroyed, and records all others", async () => {
    const { kms, keyId } = await withKey(start(), { algorithm: "SLH-DSA-SHA2-128f" });
    const requests = Array.from({ length: 8 }, () =>
      outcomeOf(kms.createCsr({ keyId, subject: "CN=release" })),
    );
    await kms.destroyKey({ keyId });
    const outcomes = await Promise.all(requests);
    const deeds = await readDeeds(kms, keyId);
    const destroyed = deeds.findIndex((deed) => deed.startsWith("DESTROY"));
    const signed = deeds.flatMap((deed, at) => (deed.startsWith("SIGN OK") ? [at] : []));
    expect(signed.filter((at) => at > destroyed)).toEqual([]);
    expect(signed).toHaveLength(outcomes.filter((outcome) => outcome === "answer").length);
  });
});
