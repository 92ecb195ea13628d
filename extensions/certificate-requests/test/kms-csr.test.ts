import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { compositeNames } from "../../../src/crypto/algorithms.ts";
import { formatAlternativeName } from "../../../src/crypto/alternative-names.ts";
import { formatDistinguishedName } from "../../../src/crypto/distinguished-name.ts";
import { qsp, qspDone, qspJson, timeout, useServer } from "../../../test/cli/qsp.ts";
import { present } from "../../../test/services/answers.ts";
import { readRequest } from "./read-request.ts";

const server = useServer();

async function makeKey(algorithm = "ML-DSA-44"): Promise<string> {
  return (await server.client(KmsService).createKey({ algorithm })).result?.keyId ?? "";
}

describe("KmsService.CreateCsr", { timeout }, () => {
  const subject = "CN=Zoë\\, release,OU=Signing,O=Example,C=DE";
  const names = {
    dnsNames: ["Example.com", "*.example.com"],
    ipAddresses: ["10.0.0.1", "2001:DB8:0::1"],
    emails: ["release@example.com"],
    uris: ["https://example.com/release", "urn:example:release"],
  };
  const formatted = [
    ...["dns:example.com", "dns:*.example.com", "ip:10.0.0.1", "ip:2001:db8::1"],
    ...["email:release@example.com", "uri:https://example.com/release", "uri:urn:example:release"],
  ];
  const algorithms = ["ML-DSA-44", "ML-DSA-65", "ML-DSA-87", "SLH-DSA-SHA2-128f", "SLH-DSA-SHAKE-256f"];

  it.each([...algorithms, ...compositeNames])(
    "requests a certificate for a %s key, with exactly the given names",
    async (algorithm) => {
      const kms = server.client(KmsService);
      const { keyId, publicKey, publicKeyPem } = present((await kms.createKey({ algorithm })).result);
      const { csr, csrPem, ...about } = present((await kms.createCsr({ keyId, subject, ...names })).result);
      expect(about).toMatchObject({ keyId, algorithm, publicKey, publicKeyPem });
      const read = await readRequest(csr);
      expect(await readRequest(Buffer.from(csrPem))).toEqual(read);
      expect(formatDistinguishedName(read.subject)).toBe(subject);
      expect(read.alternativeNames.map(formatAlternativeName)).toEqual(formatted);
      expect(read).toMatchObject({ algorithm, otherWishes: [] });
    },
  );
});

describe("qsp kms csr", { timeout }, () => {
  it("writes a request with all names in the order of the options", async () => {
    const place = server.place();
    const names = "--dns a.test --dns b.test --ip ::1 --email a@a.test --uri urn:a:b".split(" ");
    const args = ["kms", "csr", await makeKey(), "--subject", "CN=release\\, x", ...names, "--out", "a.csr"];
    expect(await qspDone(args, place)).toMatch(/^a\.csr: request of [\d,]+ bytes, ML-DSA-44\n$/);
    const request = await readRequest(readFileSync(join(place.cwd, "a.csr")));
    expect(formatDistinguishedName(request.subject)).toBe("CN=release\\, x");
    expect(request.alternativeNames.map(formatAlternativeName).join(" ")).toBe(
      "dns:a.test dns:b.test ip:::1 email:a@a.test uri:urn:a:b",
    );
    expect((statSync(join(place.cwd, "a.csr")).mode & 0o777).toString(8)).toBe("644");
  });

  it("prints the request without --out, and the whole answer with --json", async () => {
    const [place, keyId] = [server.place(), await makeKey()];
    const pem = await qspDone(["kms", "csr", keyId, "--subject", "CN=a"], place);
    expect((await readRequest(Buffer.from(pem))).algorithm).toBe("ML-DSA-44");
    const { result } = await qspJson(["kms", "csr", keyId, "--subject", "CN=a"], place);
    expect(result).toMatchObject({ keyId, algorithm: "ML-DSA-44", csrPem: expect.any(String) });
  });

  it("names the field that the server rejects, and writes no file", async () => {
    const place = server.place();
    const line = ["kms", "csr", await makeKey(), "--subject", "CN=a, O=b", "--out", "a.csr"];
    const stderr = expect.stringContaining("subject");
    expect(await qsp(line, place)).toMatchObject({ code: 3, stderr });
    expect(() => statSync(join(place.cwd, "a.csr"))).toThrow();
  });

  it("requires a name", async () => {
    const stderr = expect.stringContaining("use --subject, --dns, --ip, --email or --uri");
    expect(await qsp(["kms", "csr", "k"], server.place())).toMatchObject({ code: 2, stderr });
  });
});
