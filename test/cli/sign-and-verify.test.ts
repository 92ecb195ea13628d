import { createPublicKey, verify } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { createAuthority, issueServerCertificate, openAuthority } from "../../src/crypto/x509.ts";
import { qsp, qspDone, qspJson, type RunOptions, timeout, useServer } from "./qsp.ts";

const server = useServer();
/** An address where no server listens. */
const nowhere = "http://127.0.0.1:1";

async function makeKey(algorithm = "ML-DSA-65"): Promise<string> {
  return (await server.client(KmsService).createKey({ algorithm })).result?.keyId ?? "";
}

/** A directory with a file to sign. */
function placeWith(content: string | Uint8Array, url = server.url) {
  const place = { ...server.place(), url };
  writeFileSync(join(place.cwd, "file"), content);
  return place;
}

const read = ({ cwd }: RunOptions, name: string): Buffer => readFileSync(join(cwd, name));

/** Whether node:crypto, which is independent of qsp, accepts a signature. */
function isSignature(
  place: RunOptions,
  publicKeyFile: string,
  message: Uint8Array,
  signature: Uint8Array,
): boolean {
  return verify(null, message, createPublicKey(read(place, publicKeyFile)), signature);
}

describe("qsp sign", { timeout }, () => {
  it("signs with a server-held key, into FILE.sig", async () => {
    const keyId = await makeKey();
    const place = placeWith("hello");
    expect(await qspJson(["sign", "file", "--key", keyId], place)).toMatchObject({
      algorithm: "ML-DSA-65",
      keyId,
    });
    await qspDone(["kms", "get", keyId, "--public-key", "key.pub"], place);
    expect(isSignature(place, "key.pub", Buffer.from("hello"), read(place, "file.sig"))).toBe(true);
  });

  it.each(["ML-DSA-44", "ML-DSA-65", "ML-DSA-87", "SLH-DSA-SHA2-128f"])(
    "signs with a local %s key, without a server",
    async (algorithm) => {
      const place = placeWith("hello", nowhere);
      await qspDone(["keygen", "me", "--algorithm", algorithm], place);
      await qspDone(["sign", "file", "--key-file", "me.key", "--out", "out.sig"], place);
      expect(isSignature(place, "me.pub", Buffer.from("hello"), read(place, "out.sig"))).toBe(true);
    },
  );

  it("signs a file of many chunks", async () => {
    const content = Buffer.alloc(3_000_001, "chunks");
    const place = placeWith(content);
    const keyId = await makeKey();
    await qspDone(["sign", "file", "--key", keyId], place);
    await qspDone(["kms", "get", keyId, "--public-key", "key.pub"], place);
    expect(isSignature(place, "key.pub", content, read(place, "file.sig"))).toBe(true);
  });

  it("signs with a server-held SLH-DSA key, which does not accept a stream", async () => {
    const place = placeWith("hello");
    const keyId = await makeKey("SLH-DSA-SHAKE-128f");
    await qspDone(["sign", "file", "--key", keyId], place);
    expect((await qsp(["verify", "file", "--signature", "file.sig", "--key", keyId], place)).code).toBe(0);
  });

  it("signs standard input, and prints only base64", async () => {
    const place = { ...server.place(), url: nowhere };
    await qspDone(["keygen", "me"], place);
    const stdout = await qspDone(["sign", "-", "--key-file", "me.key"], { ...place, stdin: "hello" });
    expect(isSignature(place, "me.pub", Buffer.from("hello"), Buffer.from(stdout, "base64"))).toBe(true);
  });

  it("leaves no signature behind if the server refuses", async () => {
    const place = placeWith("hello");
    const { code, stderr } = await qsp(["sign", "file", "--key", "key-none"], place);
    expect(code).toBe(3);
    expect(stderr).toMatch(/\(NOT_FOUND, KEY_NOT_FOUND\)/);
    expect(() => statSync(join(place.cwd, "file.sig"))).toThrow();
  });
});

describe("qsp verify", { timeout }, () => {
  it("accepts a signature in base64, and requires the context that it is bound to", async () => {
    const place = placeWith("hello");
    const keyId = await makeKey();
    await qspDone(["sign", "file", "--key", keyId, "--context", "invoices"], place);
    writeFileSync(join(place.cwd, "text"), `${read(place, "file.sig").toString("base64")}\n`);
    const line = ["verify", "file", "--signature", "text", "--key", keyId];
    expect((await qsp([...line, "--context", "invoices"], place)).code).toBe(0);
    expect((await qsp([...line, "--context", "receipts"], place)).code).toBe(1);
    expect((await qsp(line, place)).code).toBe(1);
  });

  it("verifies with a rotated key, and refuses a destroyed one", async () => {
    const place = placeWith("hello");
    const keyId = await makeKey();
    await qspDone(["sign", "file", "--key", keyId], place);
    const line = ["verify", "file", "--signature", "file.sig", "--key", keyId];
    await server.client(KmsService).rotateKey({ keyId });
    expect((await qsp(line, place)).code).toBe(0);
    await server.client(KmsService).destroyKey({ keyId });
    const { code, stderr } = await qsp(line, place);
    expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringContaining("KEY_STATE_INVALID") });
  });
});

describe("qsp verify --certificate", { timeout }, () => {
  const now = new Date();
  const authority = createAuthority("ML-DSA-65", now);
  const issue = () =>
    issueServerCertificate(openAuthority(authority), { names: ["signer.test"], days: 1, now });

  it("verifies with the key of the first certificate in the file", async () => {
    const place = placeWith("hello", nowhere);
    const { certificatePem, secretKeyPem } = issue();
    writeFileSync(join(place.cwd, "me.key"), secretKeyPem);
    // OpenSSL writes text before a certificate, and some editors leave spaces at line ends.
    const [first, other] = [certificatePem.replaceAll("\n", " \r\n"), issue().certificatePem];
    writeFileSync(join(place.cwd, "me.pem"), `Subject: CN=me\n${first}${other}`);
    writeFileSync(join(place.cwd, "other.pem"), other + certificatePem);
    writeFileSync(join(place.cwd, "ca.pem"), authority.certificatePem);
    await qspDone(["sign", "file", "--key-file", "me.key"], place);
    const line = ["verify", "file", "--signature", "file.sig", "--certificate"];
    expect((await qsp([...line, "me.pem"], place)).code).toBe(0);
    expect((await qsp([...line, "other.pem"], place)).code).toBe(1);
    expect(await qsp([...line, "ca.pem"], place)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("ca.pem may not sign content: its key usage has no digitalSignature"),
    });
  });
});
