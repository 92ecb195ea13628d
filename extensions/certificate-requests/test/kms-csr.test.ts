import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { formatAlternativeName } from "../../../src/crypto/alternative-names.ts";
import { formatDistinguishedName } from "../../../src/crypto/distinguished-name.ts";
import { qsp, qspDone, qspJson, timeout, useServer } from "../../../test/cli/qsp.ts";
import { readRequest } from "./read-request.ts";

const server = useServer();

async function makeKey(algorithm = "ML-DSA-44"): Promise<string> {
  return (await server.client(KmsService).createKey({ algorithm })).result?.keyId ?? "";
}

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
    const { code, stderr } = await qsp(
      ["kms", "csr", await makeKey(), "--subject", "CN=a, O=b", "--out", "a.csr"],
      place,
    );
    expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringContaining("subject") });
    expect(() => statSync(join(place.cwd, "a.csr"))).toThrow();
  });

  it("requires a name", async () => {
    const { code, stderr } = await qsp(["kms", "csr", "k"], server.place());
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringContaining("use --subject, --dns, --ip, --email or --uri"),
    });
  });
});
