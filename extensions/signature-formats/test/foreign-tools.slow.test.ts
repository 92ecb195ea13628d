/** Third-party tools verify what `qsp sign --format` writes, and `qsp verify` verifies what they write. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import {
  CompactSign,
  compactVerify,
  exportSPKI,
  FlattenedSign,
  flattenedVerify,
  generateKeyPair,
  importSPKI,
} from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { compositeNames, signatureAlgorithms } from "../../../src/crypto/algorithms.ts";
import { createAuthority, issueServerCertificate, openAuthority } from "../../../src/crypto/x509.ts";
import { qsp, qspDone, type RunOptions, useServer } from "../../../test/cli/qsp.ts";
import { findPython } from "../../../test/interop/python.ts";
import { isMissing, run } from "../../../test/interop/tools.ts";
import { type LineClient, startLineClient } from "../../../test/support/line-client.ts";
import { makeTemporaryDirectory } from "../../../test/support/temporary-directory.ts";

const server = useServer();
const programs = import.meta.dirname;
/** The sigstore plugin's tests use it too. */
const goProgram = join(programs, "../../../test/interop/clients/formats");
/** The first Go release with ML-DSA in its library; any newer Go fetches it as a module. */
const go = ["GOTOOLCHAIN=go1.27.3", "go"];
const python = findPython("securesystemslib.dsse");
const mlDsa = ["ML-DSA-44", "ML-DSA-65", "ML-DSA-87"];
const content = "total: 5\n";

/**
 * Runs a program that must succeed.
 *
 * @returns its standard output
 */
async function succeed(program: string, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await run(program, args);
  if (code !== 0) throw new Error(`${program} exited with ${code}: ${stdout}${stderr}`);
  return stdout.trim();
}

/** A directory with content, different content and a key, none of which is on a server. */
async function placeWithKey(algorithm: string): Promise<RunOptions & { at(name: string): string }> {
  const cwd = makeTemporaryDirectory();
  writeFileSync(join(cwd, "file"), content);
  writeFileSync(join(cwd, "other"), "total: 6\n");
  const place = { cwd, url: "http://127.0.0.1:1", at: (name: string) => join(cwd, name) };
  await qspDone(["keygen", "me", "--algorithm", algorithm], place);
  return place;
}

/** A directory with content, and its CMS signature by a server-held key. */
async function placeWithServerKey(algorithm: string) {
  const place = { ...(await placeWithKey("ML-DSA-44")), url: server.url };
  const { result } = await server.client(KmsService).createKey({ algorithm });
  const keyId = result?.keyId ?? "";
  writeFileSync(place.at("me.pub"), result?.publicKeyPem ?? "");
  await qspDone(words(`sign file --key ${keyId} --format cms --encoding der --out signed`), place);
  return place;
}

const words = (line: string): string[] => line.split(" ");
const signLine = (format: string, ...more: string[]) => [
  ...words(`sign file --key-file me.key --format ${format} --out signed`),
  ...more,
];
const verifyLine = (format: string, file = "file") =>
  words(`verify ${file} --signature signed --format ${format} --public-key me.pub`);

describe.skipIf(isMissing("go"))("sigstore and go-cose (need go)", { timeout: 600_000 }, () => {
  const directory = makeTemporaryDirectory(afterAll);
  const verifier = join(directory, "verifier");
  beforeAll(async () => {
    await succeed("env", ...go, "build", "-C", goProgram, "-o", verifier, ".");
  }, 600_000);

  it.each(mlDsa)("verify only unchanged DSSE and COSE of %s, detached or not", async (algorithm) => {
    const place = await placeWithKey(algorithm);
    const check = (format: string, file = "file") =>
      run(verifier, [format, place.at("me.pub"), place.at(file), place.at("signed")]);
    await qspDone(signLine("dsse"), place);
    expect(await check("dsse")).toMatchObject({ code: 0, stdout: "verified\n" });
    const envelope = JSON.parse(readFileSync(place.at("signed"), "utf8"));
    writeFileSync(place.at("signed"), JSON.stringify({ ...envelope, payloadType: "text/plain" }));
    expect(await check("dsse")).toMatchObject({ code: 1 });
    for (const more of [[], ["--embed"]]) {
      await qspDone(signLine("cose", ...more), place);
      expect(await check("cose")).toMatchObject({ code: 0, stdout: "verified\n" });
      expect(await check("cose", "other")).toMatchObject({ code: 1 });
    }
  });
});

describe.skipIf(python === undefined)("securesystemslib (needs Python)", { timeout: 180_000 }, () => {
  const dsse = (...args: string[]) => succeed(python ?? "", join(programs, "python/dsse.py"), ...args);

  it.each(mlDsa)("verifies our %s envelope and rejects a changed one", async (algorithm) => {
    const place = await placeWithKey(algorithm);
    await qspDone(signLine("dsse", "--payload-type", "text/plain"), place);
    const check = async () => JSON.parse(await dsse("verify", place.at("me.pub"), place.at("signed")));
    expect(await check()).toEqual({ valid: true, payloadType: "text/plain", payload: content });
    const envelope = JSON.parse(readFileSync(place.at("signed"), "utf8"));
    writeFileSync(place.at("signed"), JSON.stringify({ ...envelope, payload: btoa("total: 6\n") }));
    expect(await check()).toEqual({ valid: false });
  });

  it("creates envelopes that qsp verifies", async () => {
    const place = await placeWithKey("ML-DSA-65");
    await dsse("sign", place.at("me.pub"), place.at("file"), place.at("signed"));
    expect((await qsp(verifyLine("dsse"), place)).code).toBe(0);
    expect((await qsp(verifyLine("dsse", "other"), place)).code).toBe(1);
  });
});

const lacksJava = isMissing("mvn") || isMissing("javac");
describe.skipIf(lacksJava)("BouncyCastle (needs mvn and javac)", { timeout: 300_000 }, () => {
  const directory = makeTemporaryDirectory(afterAll);
  let bouncyCastle: LineClient<readonly string[], string>;
  const cms = (...request: string[]) => bouncyCastle.ask(request);
  beforeAll(async () => {
    const [paths, classes] = [join(directory, "paths"), join(directory, "classes")];
    mkdirSync(classes);
    const pom = join(programs, "java/pom.xml");
    await succeed("mvn", "-q", "-f", pom, "dependency:build-classpath", `-Dmdep.outputFile=${paths}`);
    const classPath = [classes, readFileSync(paths, "utf8").trim()].join(delimiter);
    const source = join(programs, "java/Cms.java");
    await succeed("javac", "-nowarn", "-proc:none", "-cp", classPath, "-d", classes, source);
    bouncyCastle = startLineClient("java", ["-cp", classPath, "Cms"]);
  }, 300_000);
  afterAll(() => bouncyCastle.end());

  /** Expects that it accepts the signed file, with these object identifiers, and rejects another. */
  async function expectVerified({ at }: { at(name: string): string }, ...oids: string[]): Promise<void> {
    const check = (file: string) => cms("verify", at("me.pub"), at(file), at("signed"));
    expect(await check("file")).toBe(`true ${oids.join(" ")} 0`);
    expect(await check("other")).toBe(`false ${oids.join(" ")} 0`);
  }
  async function expectVerifiedHere(place: RunOptions): Promise<void> {
    expect((await qsp(verifyLine("cms"), place)).code).toBe(0);
    expect((await qsp(verifyLine("cms", "other"), place)).code).toBe(1);
  }

  it.each([
    ["ML-DSA-44", "17", "3"],
    ["ML-DSA-65", "18", "3"],
    ["ML-DSA-87", "19", "3"],
    ["SLH-DSA-SHA2-128f", "21", "1"],
    ["SLH-DSA-SHA2-192f", "23", "3"],
    ["SLH-DSA-SHAKE-128f", "27", "11"],
    ["SLH-DSA-SHAKE-256f", "31", "12"],
  ])("verifies our %s CMS and rejects it for different content", async (algorithm, signature, digest) => {
    const place = await placeWithKey(algorithm);
    await qspDone(signLine("cms", "--encoding", "der"), place);
    await expectVerified(place, `2.16.840.1.101.3.4.3.${signature}`, `2.16.840.1.101.3.4.2.${digest}`);
  });

  it.each(compositeNames)("verifies our %s CMS and rejects it for different content", async (algorithm) => {
    const place = await placeWithServerKey(algorithm);
    await expectVerified(place, signatureAlgorithms[algorithm].oid, "2.16.840.1.101.3.4.2.3");
    await expectVerifiedHere(place);
  });

  it("verifies our CMS with the certificate that it names, and finds the chain in it", async () => {
    const place = await placeWithKey("ML-DSA-65");
    const now = new Date();
    const authority = createAuthority("ML-DSA-65", now);
    const names = { names: ["signer.test"], days: 1, now };
    const issued = issueServerCertificate(openAuthority(authority), names);
    writeFileSync(place.at("me.key"), issued.secretKeyPem);
    writeFileSync(place.at("me.pem"), issued.certificatePem + authority.certificatePem);
    await qspDone(signLine("cms", "--encoding", "der", "--certificate", "me.pem"), place);
    const said = await cms("verify", place.at("me.pem"), place.at("file"), place.at("signed"));
    expect(said).toMatch(/^true .* 2$/);
  });

  const created = ["ML-DSA-44", "ML-DSA-65", "ML-DSA-87", "SLH-DSA-SHA2-128F", "SLH-DSA-SHAKE-256F"];
  it.each([...created, ...compositeNames])("creates %s CMS that qsp verifies", async (algorithm) => {
    const place = await placeWithKey("ML-DSA-65");
    await cms("sign", algorithm, place.at("me.pub"), place.at("file"), place.at("signed"));
    await expectVerifiedHere(place);
  });
});

describe("jose", { timeout: 180_000 }, () => {
  it.each(mlDsa)("verifies our %s JWS, compact and JSON, detached or not", async (algorithm) => {
    const place = await placeWithKey(algorithm);
    const key = await importSPKI(readFileSync(place.at("me.pub"), "utf8"), algorithm);
    const payload = Buffer.from(content).toString("base64url");
    const signed = async (...more: string[]) => {
      await qspDone(signLine("jws", ...more), place);
      return readFileSync(place.at("signed"), "utf8").trim();
    };
    const textOf = async (verified: Promise<{ payload: Uint8Array }>) =>
      Buffer.from((await verified).payload).toString();
    expect(await textOf(compactVerify(await signed("--embed"), key))).toBe(content);
    // RFC 7515, appendix F: the payload goes between the two dots.
    expect(await textOf(compactVerify((await signed()).replace("..", `.${payload}.`), key))).toBe(content);
    const detached = { ...JSON.parse(await signed("--encoding", "json")), payload };
    expect(await textOf(flattenedVerify(detached, key))).toBe(content);
    const other = { ...detached, payload: Buffer.from("total: 6\n").toString("base64url") };
    await expect(flattenedVerify(other, key)).rejects.toThrow("signature verification failed");
  });

  it("creates JWS that qsp verifies, except with RFC 7797's b64", async () => {
    const place = await placeWithKey("ML-DSA-65");
    const { publicKey, privateKey } = await generateKeyPair("ML-DSA-65");
    writeFileSync(place.at("me.pub"), await exportSPKI(publicKey));
    const alg = "ML-DSA-65";
    const compact = await new CompactSign(Buffer.from(content)).setProtectedHeader({ alg }).sign(privateKey);
    const json = await new FlattenedSign(Buffer.from(content)).setProtectedHeader({ alg }).sign(privateKey);
    const detached = compact.replace(/\..*\./, "..");
    for (const document of [compact, `${compact}\n`, JSON.stringify(json), detached]) {
      writeFileSync(place.at("signed"), document);
      expect((await qsp(verifyLine("jws"), place)).code).toBe(0);
      expect((await qsp(verifyLine("jws", "other"), place)).code).toBe(1);
    }
    const header = { alg, b64: false, crit: ["b64"] };
    const unencoded = new FlattenedSign(Buffer.from(content)).setProtectedHeader(header);
    writeFileSync(place.at("signed"), JSON.stringify(await unencoded.sign(privateKey)));
    expect((await qsp(verifyLine("jws"), place)).code).toBe(2);
  });
});
