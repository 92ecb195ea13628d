/** CSRs from `qsp kms csr` and certificates from `qsp ca issue`, read by independent implementations. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { compositeNames } from "../../../src/crypto/algorithms.ts";
import { encodePem } from "../../../src/crypto/pem.ts";
import { qspDone, timeout, useServer } from "../../../test/cli/qsp.ts";
import { der, makeRequest, makeRequestKey, oids } from "../../../test/crypto/requests.ts";
import { bouncyCastle, isBouncyCastleMissing } from "../../../test/interop/java.ts";
import { findPython } from "../../../test/interop/python.ts";
import { isMissing, isOpensslTooOld, run } from "../../../test/interop/tools.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";

const server = useServer();
const directory = makeTemporaryDirectory(afterAll);

/** Paths of a CSR and its certificate. */
interface Issued {
  readonly csr: string;
  readonly certificate: string;
  readonly ca: string;
  readonly subject: string;
}

const identifiers: Record<string, string> = {
  "ML-DSA-44": "2.16.840.1.101.3.4.3.17",
  "ML-DSA-65": "2.16.840.1.101.3.4.3.18",
  "ML-DSA-87": "2.16.840.1.101.3.4.3.19",
  "SLH-DSA-SHA2-128f": "2.16.840.1.101.3.4.3.21",
  "SLH-DSA-SHAKE-192f": "2.16.840.1.101.3.4.3.29",
  "ECDSA-P256": "1.2.840.10045.4.3.2",
};
const algorithms = Object.keys(identifiers);
/** Bouncy Castle alone has composites. */
const allAlgorithms = [...algorithms, ...compositeNames];
const names = [
  "dns:*.example.com",
  "ip:10.0.0.1",
  "ip:2001:db8::1",
  "email:ada@example.com",
  "uri:urn:example:a",
];

/** Subjects that would add or change a part if they were not escaped and parsed correctly. */
const oddSubjects = [
  "CN=release\\,O=Other,O=Example",
  "CN=release\\+OU=Other,O=Example",
  'CN=a=b\\;c\\<d\\>e\\"f\\\\,O=Example',
  "CN=\\#0c0161",
  "CN=/O=Other/CN=root",
  "CN=$PATH $(id) `id` %s %n",
  "CN=*.example.com",
  "CN=Zo\\C3\\AB 名前 😀,O=Ex\u00e4mple,C=DE",
  "CN=a\\2CO\\3Db\\5C,UID=x\\+y",
  "OU=b,OU=a,DC=example,DC=com",
];

const path = (file: string): string => join(directory, file);
const qsp = (...args: string[]): Promise<string> => qspDone(args, { cwd: directory, url: server.url });
const text = (file: string): string => readFileSync(path(file), "utf8");

async function makeCsr(algorithm: string, file: string, ...args: string[]): Promise<void> {
  const { result } = await server.client(KmsService).createKey({ algorithm });
  await qsp("kms", "csr", result?.keyId ?? "", "--out", file, ...args);
}

async function issue(algorithm: string): Promise<Issued> {
  const [csr, certificate, subject] = [`${algorithm}.csr`, `${algorithm}.crt`, "CN=release,O=Example"];
  if (algorithm === "ECDSA-P256") {
    const request = makeRequest({ key: makeRequestKey("ec", der(0x30, oids.ecdsaWithSha256)) });
    writeFileSync(path(csr), encodePem("CERTIFICATE REQUEST", request));
  } else {
    const options = names
      .map((name) => name.split(/:(.*)/s).slice(0, 2))
      .flatMap(([kind, value = ""]) => [`--${kind}`, value]);
    await makeCsr(algorithm, csr, "--subject", subject, ...options);
  }
  const chosen = ["--subject", subject, ...names.flatMap((name) => ["--name", name])];
  await qsp(
    ...["ca", "issue", "--csr", csr, "--out", certificate, "--purpose", "code", "--data-dir", "."],
    ...chosen,
  );
  const ca = algorithm === "ECDSA-P256" ? "tls/ca.crt" : "tls/ca-mldsa.crt";
  return { csr, certificate, ca, subject };
}

const issued = new Map<string, Issued>();
const find = (algorithm: string) => issued.get(algorithm) as Issued;

beforeAll(async () => {
  await qsp("ca", "init", "--data-dir", ".");
  for (const algorithm of allAlgorithms) issued.set(algorithm, await issue(algorithm));
  for (const [i, subject] of oddSubjects.entries())
    await makeCsr("ML-DSA-44", `odd-${i}.csr`, "--subject", subject);
}, 120_000);

const python = findPython("cryptography.hazmat.primitives.asymmetric.mldsa");
const needsPython = python === undefined ? " (needs Python with cryptography 50 or newer)" : "";

describe.skipIf(python === undefined)(`pyca/cryptography${needsPython}`, { timeout }, () => {
  const script = join(import.meta.dirname, "python/certificates.py");
  const read = async (input: object) => {
    const { code, stdout, stderr } = await run(python ?? "", [script], JSON.stringify(input));
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    return JSON.parse(stdout) as { requests: unknown[]; certificates: unknown[] };
  };
  const certificate = ({ certificate, ca }: Issued) => ({ certificate: text(certificate), ca: text(ca) });

  const postQuantum = algorithms.filter((name) => name !== "ECDSA-P256");
  it.each(postQuantum)("finds exactly the names and the signature in a %s request", async (algorithm) => {
    const { csr, subject } = find(algorithm);
    const { requests } = await read({ requests: [{ csr: text(csr), subject }], certificates: [] });
    expect(requests).toEqual([
      {
        // It does not support SLH-DSA.
        signed: algorithm.startsWith("SLH-DSA") ? "unsupported" : true,
        algorithm: identifiers[algorithm],
        sameSubject: true,
        extensions: ["2.5.29.17"],
        attributes: 1,
        names,
        critical: false,
      },
    ]);
  });

  it("reads the same subject from a request as from the text, byte for byte", async () => {
    const requests = oddSubjects.map((subject, i) => ({ csr: text(`odd-${i}.csr`), subject }));
    const found = await read({ requests, certificates: [] });
    const expected = oddSubjects.map(() =>
      expect.objectContaining({ signed: true, sameSubject: true, names: [] }),
    );
    expect(found.requests).toEqual(expected);
  });

  it.each(algorithms)("verifies the certificate of a %s key, which is not a CA", async (algorithm) => {
    const { certificates } = await read({ requests: [], certificates: [certificate(find(algorithm))] });
    expect(certificates).toEqual([
      {
        issued: true,
        subject: "CN=release,O=Example",
        ca: false,
        uses: ["digital_signature"],
        purposes: ["1.3.6.1.5.5.7.3.3"],
        extensions: ["2.5.29.19", "2.5.29.15", "2.5.29.37", "2.5.29.17", "2.5.29.14", "2.5.29.35"],
        names,
        critical: false,
      },
    ]);
  });

  it("does not verify it against the other CA", async () => {
    const other = { ...find("ML-DSA-65"), ca: "tls/ca.crt" };
    const { certificates } = await read({ requests: [], certificates: [certificate(other)] });
    expect(certificates).toMatchObject([{ issued: false }]);
  });
});

const needsJava = isBouncyCastleMissing() ? " (needs Java and Bouncy Castle)" : "";

describe.skipIf(isBouncyCastleMissing())(`Bouncy Castle${needsJava}`, { timeout }, () => {
  /** What it says about the requests, a changed one, the certificates, and one below the other CA. */
  let said: string[] = [];
  const count = allAlgorithms.length;

  beforeAll(async () => {
    const bytes = Buffer.from(text("ML-DSA-65.csr").replaceAll(/-----.*-----|\n/g, ""), "base64");
    bytes[bytes.indexOf("release")] = 0x52;
    writeFileSync(path("changed.csr"), encodePem("CERTIFICATE REQUEST", bytes));
    await qsp("ca", "init", "--data-dir", "other");
    const made = allAlgorithms.map(find);
    const args = [
      ...[...made.map(({ csr }) => csr), "changed.csr"].flatMap((csr) => ["request", path(csr)]),
      ...made.flatMap(({ certificate, ca }) => ["chain", path(certificate), path(ca)]),
      ...["chain", path("ML-DSA-65.crt"), path("other/tls/ca-mldsa.crt")],
    ];
    const program = join(import.meta.dirname, "java/Certificates.java");
    const { code, stdout, stderr } = await run("java", ["-cp", bouncyCastle, program, ...args]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    said = stdout.trimEnd().split("\n");
  }, timeout);

  it("verifies requests of all algorithms", () => {
    const line = `signed=true names=${names.length} subject=CN=release,O=Example`;
    expect(said.slice(0, count)).toEqual(
      allAlgorithms.map((name) => (name === "ECDSA-P256" ? "signed=true names=0 subject=CN=release" : line)),
    );
  });

  it("rejects a request that was changed", () => {
    expect(said[count]).toMatch(/^signed=false .*CN=Release/);
  });

  it("validates the certificate paths of all algorithms", () => {
    expect(said.slice(count + 1, -1)).toEqual(allAlgorithms.map(() => "valid ca=false"));
  });

  it("does not validate the path to a different CA", () => {
    expect(said.at(-1)).toBe("invalid");
  });
});

/** Expects that openssl verifies an algorithm's CSR and certificate. */
async function expectVerified(algorithm: string): Promise<void> {
  const { csr, certificate, ca } = find(algorithm);
  const request = await run("openssl", ["req", "-in", path(csr), "-verify", "-noout"]);
  const stderr = expect.stringContaining("Certificate request self-signature verify OK");
  expect(request).toMatchObject({ code: 0, stderr });
  const chain = await run("openssl", ["verify", "-x509_strict", "-CAfile", path(ca), path(certificate)]);
  expect(chain).toMatchObject({ code: 0, stdout: `${path(certificate)}: OK\n` });
}

describe.skipIf(isMissing("openssl"))("openssl (needs openssl)", { timeout }, () => {
  it("verifies the request and the certificate of an ECDSA key", () => expectVerified("ECDSA-P256"));

  const itNew = it.skipIf(isOpensslTooOld());
  itNew.each(algorithms)("verifies request and certificate of a %s key (needs openssl 3.5)", expectVerified);
});
