/** `qsp sign` and `qsp verify` with --format. */
import { X509Certificate } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { encodePem } from "../../../src/crypto/pem.ts";
import { createAuthority, issueServerCertificate, openAuthority } from "../../../src/crypto/x509.ts";
import { useGuardedServer } from "../../../test/cli/guarded-server.ts";
import { qsp, qspDone, qspJson, type RunOptions, timeout, useServer } from "../../../test/cli/qsp.ts";
import { embedContent } from "./embed-content.ts";

const server = useServer();
const formats = ["dsse", "cms", "jws", "cose"] as const;

async function placeWithKey(algorithm = "ML-DSA-65", content: string | Uint8Array = "hello") {
  const place = { ...server.place(), url: "http://127.0.0.1:1" };
  writeFileSync(join(place.cwd, "file"), content);
  await qspDone(["keygen", "me", "--algorithm", algorithm], place);
  return place;
}

const read = ({ cwd }: RunOptions, name: string): Buffer => readFileSync(join(cwd, name));
const write = ({ cwd }: RunOptions, name: string, content: string | Uint8Array) =>
  writeFileSync(join(cwd, name), content);
const words = (line: string): string[] => line.split(" ");
const signLine = (format: string) => words(`sign file --key-file me.key --format ${format}`);
/** @param key the name of the key pair */
const verifyLine = (format: string, file = "file", key = "me", signature = `file.${format}`) =>
  words(`verify ${file} --signature ${signature} --format ${format} --public-key ${key}.pub`);
const codeOf = async (line: string[], place: RunOptions) => (await qsp(line, place)).code;
/** Verifies a document with its content inside. */
const openLine = (format: string, ...rest: string[]) => [
  ...words(`verify file.${format} --format ${format} --public-key me.pub`),
  ...rest,
];

/** A directory with a signed file, and a second key pair. */
async function placeSigned(format: string, more: readonly string[] = [], algorithm?: string) {
  const place = await placeWithKey(algorithm);
  await qspDone([...signLine(format), ...more], place);
  await qspDone(["keygen", "you"], place);
  return place;
}

describe("qsp sign --format", { timeout }, () => {
  it.each(formats)("writes FILE.%s, which verifies only for its content and key", async (format) => {
    const place = await placeSigned(format);
    expect(await codeOf(verifyLine(format), place)).toBe(0);
    write(place, "other", "hellO");
    const stdout = expect.stringContaining("NOT valid");
    expect(await qsp(verifyLine(format, "other"), place)).toMatchObject({ code: 1, stdout });
    expect(await codeOf(verifyLine(format, "file", "you"), place)).toBe(1);
  });

  it.each(formats)(
    "signs %s with a server-held key, which verifies as its version after a rotation",
    async (format) => {
      const place = server.place();
      write(place, "file", "hello");
      const kms = server.client(KmsService);
      const { result } = await kms.createKey({ name: `release-${format}` });
      const name = `name/release-${format}`;
      const signed = await qspJson(words(`sign file --key ${name} --format ${format}`), place);
      const about = { format, algorithm: "ML-DSA-65", keyId: result?.keyId, file: `file.${format}` };
      expect(signed).toMatchObject(about);
      const line = words(`verify file --signature file.${format} --format ${format}`);
      expect(await codeOf([...line, "--key", name], place)).toBe(0);
      await kms.rotateKey({ keyId: result?.keyId ?? "" });
      expect(await codeOf([...line, "--key", `${name}/1`], place)).toBe(0);
      expect(await codeOf([...line, "--key", name], place)).toBe(1);
    },
  );

  const hashBased = ["SLH-DSA-SHA2-128f", "SLH-DSA-SHAKE-128f"];
  it.each(hashBased)("signs dsse and cms with %s, and rejects jws and cose", async (algorithm) => {
    const place = await placeWithKey(algorithm);
    for (const format of ["dsse", "cms"]) {
      await qspDone(signLine(format), place);
      expect(await codeOf(verifyLine(format), place)).toBe(0);
    }
    const stderr = expect.stringContaining("RFC 9964");
    for (const format of ["jws", "cose"])
      expect(await qsp(signLine(format), place)).toMatchObject({ code: 2, stderr });
  });

  it.each(["cms", "jws"])("signs a file of many chunks in %s as a detached signature", async (format) => {
    const place = await placeWithKey("ML-DSA-44", Buffer.alloc(20_000_001, "chunks"));
    await qspDone(signLine(format), place);
    expect(await codeOf(verifyLine(format), place)).toBe(0);
    expect(statSync(join(place.cwd, `file.${format}`)).size).toBeLessThan(10_000);
  });

  it.each(["dsse", "cose"])(
    "rejects a file of more than 16 MiB in %s, and names other formats",
    async (format) => {
      const place = await placeWithKey("ML-DSA-44", Buffer.alloc(16 * 1024 * 1024 + 1));
      const stderr = expect.stringMatching(/16777216 bytes.*use cms or a detached jws/);
      expect(await qsp(signLine(format), place)).toMatchObject({ code: 2, stderr });
    },
  );

  it("prints the signature of standard input, as text or base64", async () => {
    const place = { ...(await placeWithKey()), stdin: "hello" };
    const line = (format: string) => ["sign", "-", "--key-file", "me.key", "--format", format];
    expect(await qspDone(line("cms"), place)).toMatch(/^-----BEGIN CMS-----\n/);
    expect(await qspDone(line("jws"), place)).toMatch(/^[\w-]+\.\.[\w-]+\n$/);
    expect(JSON.parse(await qspDone(line("dsse"), place)).payload).toBe("aGVsbG8=");
    expect(Buffer.from(await qspDone(line("cose"), place), "base64")[0]).toBe(0xd2);
  });

  it("derives the type of in-toto statements from the file name, and writes no keyid into dsse", async () => {
    const place = await placeWithKey();
    write(place, "build.intoto", "{}");
    const envelopeOf = async (...more: string[]) => {
      await qspDone(["sign", ...more, "--key-file", "me.key", "--format", "dsse", "--out", "out"], place);
      return JSON.parse(String(read(place, "out")));
    };
    // Each library computes it differently.
    const signatures = [{ keyid: "", sig: expect.any(String) }];
    for (const [type, ...more] of [
      ["application/vnd.in-toto+json", "build.intoto"],
      ["application/octet-stream", "file"],
      ["text/plain", "file", "--payload-type", "text/plain"],
    ])
      expect(await envelopeOf(...more)).toMatchObject({ payloadType: type, signatures });
  });

  it.each([
    ["--format pgp", /--format "pgp" is unknown; use one of raw, dsse, cms, jws, cose/],
    ["--format jws --context x", /--context cannot be combined with --format/],
    ["--format dsse --sha256", /--sha256 cannot be combined with --format/],
    ["--format jws --payload-type x", /--payload-type is for --format dsse/],
    ["--embed", /--embed is for --format jws and --format cose/],
    ["--format cms --encoding json", /--encoding "json" is not available for cms; use one of pem, der/],
    ["--format cms --certificate file", /file: no certificate in PEM/],
    ["--certificate file", /--certificate is for --format cms/],
    ["--format dsse --payload-type ", /payload type is empty/],
  ])("rejects %s", async (more, message) => {
    const line = ["sign", "file", "--key-file", "me.key", ...words(more)];
    const stderr = expect.stringMatching(message);
    expect(await qsp(line, await placeWithKey())).toMatchObject({ code: 2, stderr });
  });
});

describe("a certificate", { timeout }, () => {
  const now = new Date();
  const issue = () => {
    const authority = createAuthority("ML-DSA-65", now);
    const names = { names: ["signer.test"], days: 1, now };
    return { authority, ...issueServerCertificate(openAuthority(authority), names) };
  };

  it("is embedded in the CMS message with its CAs' certificates, and verifies messages that name it", async () => {
    const place = await placeWithKey();
    const { authority, certificatePem, secretKeyPem } = issue();
    write(place, "me.key", secretKeyPem);
    write(place, "me.pem", certificatePem);
    write(place, "chain.pem", certificatePem + authority.certificatePem);
    write(place, "other.pem", issue().certificatePem);
    await qspDone([...signLine("cms"), "--certificate", "chain.pem", "--encoding", "der"], place);
    const message = read(place, "file.cms");
    for (const pem of [certificatePem, authority.certificatePem])
      expect(message.includes(new X509Certificate(pem).raw)).toBe(true);
    const line = ["verify", "file", "--signature", "file.cms", "--format", "cms", "--certificate"];
    expect(await codeOf([...line, "me.pem"], place)).toBe(0);
    expect(await codeOf([...line, "other.pem"], place)).toBe(1);
    // The same key, in a message that identifies only the key.
    await qspDone(signLine("cms"), place);
    expect(await codeOf([...line, "me.pem"], place)).toBe(0);
  });

  const malformed = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  it.each<[string, (pem: string, authority: string) => string, RegExp]>([
    ["for a different key", (pem) => pem, /a different key/],
    ["that may only sign certificates", (_pem, authority) => authority, /digitalSignature/],
    ["that is malformed", () => malformed, /is not an X\.509 certificate/],
    ["among more than ten", (pem) => pem.repeat(11), /more than 10/],
    ["with an unknown algorithm", withUnknownKey, /pem has a key of an unsupported algorithm/],
    ["that is truncated, followed by another", (pem) => pem.slice(0, 300) + pem, /pem: .*line/],
  ])("%s is rejected", async (_what, change, message) => {
    const place = await placeWithKey();
    const { certificatePem, authority } = issue();
    write(place, "pem", change(certificatePem, authority.certificatePem));
    const stderr = expect.stringMatching(message);
    expect(await qsp([...signLine("cms"), "--certificate", "pem"], place)).toMatchObject({ code: 2, stderr });
  });
});

/** Replaces ML-DSA-65's object identifier wherever a certificate contains it. */
function withUnknownKey(certificatePem: string): string {
  const hex = new X509Certificate(certificatePem).raw.toString("hex");
  const changed = hex.replaceAll("0609608648016503040312", "060960864801650304037f");
  return encodePem("CERTIFICATE", Uint8Array.fromHex(changed));
}

describe("qsp verify --format", { timeout }, () => {
  it.each([
    ["dsse", []],
    ["jws", ["--embed"]],
    ["jws", ["--embed", "--encoding", "json"]],
    ["cose", ["--embed"]],
  ])("verifies %s with embedded content (%j) and writes the content", async (format, more) => {
    const place = await placeSigned(format, more);
    expect(await codeOf(openLine(format, "--out", "content"), place)).toBe(0);
    expect(read(place, "content").toString()).toBe("hello");
    expect(await codeOf(verifyLine(format), place)).toBe(0);
    write(place, "shorter", "hell");
    expect(await codeOf(verifyLine(format, "shorter"), place)).toBe(1);
  });

  it("verifies a third-party cms message with embedded content, and writes the content", async () => {
    const place = await placeSigned("cms", ["--encoding", "der"]);
    const detached = read(place, "file.cms");
    const embed = (content: string) => write(place, "file.cms", embedContent(detached, Buffer.from(content)));
    write(place, "other", "hellO");
    embed("hello");
    expect(await codeOf(openLine("cms", "--out", "content"), place)).toBe(0);
    expect(read(place, "content").toString()).toBe("hello");
    expect(await codeOf(verifyLine("cms"), place)).toBe(0);
    const stdout = expect.stringContaining("the content is not the signed content");
    expect(await qsp(verifyLine("cms", "other"), place)).toMatchObject({ code: 1, stdout });
    embed("hellO");
    expect(await codeOf(openLine("cms", "--out", "forged"), place)).toBe(1);
    expect(() => read(place, "forged")).toThrow();
  });

  it("writes and shows nothing of an invalid envelope", async () => {
    const place = await placeSigned("dsse", ["--payload-type", "text/secret"]);
    const line = words("verify file.dsse --format dsse --public-key you.pub --out content --json");
    const stdout = '{"valid":false,"format":"dsse","algorithm":"ML-DSA-65"}\n';
    expect(await qsp(line, place)).toMatchObject({ code: 1, stdout });
    expect(() => read(place, "content")).toThrow();
  });

  it("requires the payload type that is given", async () => {
    const place = await placeSigned("dsse");
    const line = [...verifyLine("dsse"), "--payload-type"];
    expect(await codeOf([...line, "application/octet-stream"], place)).toBe(0);
    const stdout = expect.stringContaining("the payload type is not text/plain");
    expect(await qsp([...line, "text/plain"], place)).toMatchObject({ code: 1, stdout });
  });

  it("accepts an envelope if any of its signatures is by the key", async () => {
    const place = await placeSigned("dsse");
    const envelope = JSON.parse(String(read(place, "file.dsse")));
    const wrong = Buffer.alloc(3309).toString("base64");
    envelope.signatures.unshift({ keyid: "", sig: "AAAA" }, { keyid: "x", sig: wrong });
    write(place, "file.dsse", JSON.stringify(envelope));
    expect(await codeOf(verifyLine("dsse"), place)).toBe(0);
  });

  it.each(["cms", "jws", "cose"])("asks for the content of a detached %s", async (format) => {
    const stderr = expect.stringContaining("--signature");
    expect(await qsp(openLine(format), await placeSigned(format))).toMatchObject({ code: 2, stderr });
  });

  it.each(formats)("reports a %s whose algorithm differs from the key's as not valid", async (format) => {
    const place = await placeSigned(format, [], "ML-DSA-44");
    // A DSSE envelope names no algorithm.
    const reason = format === "dsse" ? "" : "; the signature uses ML-DSA-44, but the key is ML-DSA-65";
    const stdout = `file: the signature is NOT valid (ML-DSA-65${reason})\n`;
    expect(await qsp(verifyLine(format, "file", "you"), place)).toMatchObject({ code: 1, stdout });
  });

  it.each(formats)("rejects malformed %s with one sentence", async (format) => {
    const place = await placeWithKey();
    for (const content of ["", "hello", "\u0000".repeat(1000), "{", "[".repeat(1_000_000)]) {
      write(place, `file.${format}`, content);
      const { code, stderr } = await qsp(verifyLine(format), place);
      expect({ code, lines: stderr.split("\n").length }).toEqual({ code: 2, lines: 2 });
    }
  });

  it("rejects an endless document", async () => {
    const place = { ...(await placeWithKey()), hasOwnGroup: true };
    const stderr = expect.stringContaining("is larger than");
    const line = verifyLine("dsse", "file", "me", "/dev/zero");
    expect(await qsp(line, place)).toMatchObject({ code: 2, stderr });
  });

  it("exits with 0, 1 or 2 whichever byte of a document is changed", async () => {
    const place = await placeWithKey("ML-DSA-44");
    for (const format of formats) {
      await qspDone(signLine(format), place);
      const document = read(place, `file.${format}`);
      for (let i = 0; i < 12; i++) {
        const changed = Buffer.from(document);
        const at = Math.floor((i * document.length) / 12);
        changed[at] = (changed[at] ?? 0) ^ 0x11;
        write(place, "changed", changed);
        const { code, stderr } = await qsp(verifyLine(format, "file", "me", "changed"), place);
        expect([0, 1, 2], `${format} at ${at}: ${stderr}`).toContain(code);
        // Only key hints are unsigned.
        if (code === 0) expect(format).not.toBe("jws");
      }
    }
  });
});

describe("files, keys and grants with --format", { timeout }, () => {
  const { loggedIn } = useGuardedServer();
  const open = words("verify file.dsse --format dsse --public-key me.pub --out");
  it.each([
    ["the secret key by default", words("sign me --format dsse --key-file me.dsse"), "--key-file"],
    ["the envelope", [...open, "file.dsse"], "FILE"],
  ])("never replace an input, such as %s, and the message names both options", async (_what, args, other) => {
    const place = await placeSigned("dsse");
    const readAll = () => ["file", "file.dsse", "me.key", "me.pub"].map((name) => read(place, name));
    const before = readAll();
    const { code, stdout, stderr } = await qsp(args, place);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(/^qsp: [^\n]*--out[^\n]+; name [^\n]+\n$/);
    expect(stderr).toContain(other);
    expect(readAll()).toEqual(before);
  });

  it("write the envelope's content to -, and the verdict to standard error", async () => {
    const { code, stdout, stderr } = await qsp([...open, "-"], await placeSigned("dsse"));
    expect({ code, stdout }).toEqual({ code: 0, stdout: "hello" });
    expect(stderr).toContain("the signature is valid");
  });

  it("suggest --format if the signature is in a standard format", async () => {
    const line = words("verify file --signature file.jws --public-key me.pub");
    const stderr = expect.stringContaining("did you mean --format jws?\n");
    expect(await qsp(line, await placeSigned("jws"))).toMatchObject({ code: 2, stderr });
  });

  it.each(formats)("find the public key that signed in %s among several", async (format) => {
    const place = await placeSigned(format);
    await qspDone(words("keygen small --algorithm ML-DSA-44"), place);
    const keys = ["small", "you", "me"].map((name) => read(place, `${name}.pub`).toString());
    write(place, "keys.pub", keys.join(""));
    write(place, "others.pub", keys.slice(0, 2).join(""));
    const found = await qspJson(verifyLine(format, "file", "keys"), place);
    expect(found).toMatchObject({ valid: true, keyNumber: 3 });
    const stdout = expect.stringContaining("none of 2 keys");
    expect(await qsp(verifyLine(format, "file", "others"), place)).toMatchObject({ code: 1, stdout });
  });

  it("sign a document larger than a gRPC message with a server-held key", async () => {
    const ada = await loggedIn("ada");
    await qspDone(words("kms create --name large"), ada);
    write(ada, "large", new Uint8Array(5 * 1024 * 1024));
    await qspDone(words("sign large --key name/large --format dsse"), ada);
    const line = words("verify large --signature large.dsse --format dsse --key name/large");
    expect(await codeOf(line, ada)).toBe(0);
  });

  it("need a grant to GET_KEY in addition to SIGN", async () => {
    const [ada, bob] = [await loggedIn("ada"), await loggedIn("bob")];
    await qspDone(words("kms create --name shared"), ada);
    const grant = words("kms grant name/shared bob --operations");
    await qspDone([...grant, "SIGN"], ada);
    write(bob, "file", "a document");
    const line = words("sign file --key user/ada/name/shared --format jws");
    expect(await qsp(line, bob)).toMatchObject({ code: 3, stderr: expect.stringContaining("GRANT_MISSING") });
    await qspDone([...grant, "GET_KEY"], ada);
    expect(await codeOf(line, bob)).toBe(0);
  });
});
