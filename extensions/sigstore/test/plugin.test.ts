/** `qsp sigstore-kms`, called the way sigstore calls it. */
import { createHash, createPublicKey, verify } from "node:crypto";
import { describe, expect, it } from "vitest";
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { useGuardedServer } from "../../../test/cli/guarded-server.ts";
import { qsp, qspDone, type RunOptions, runQsp, timeout, useServer } from "../../../test/cli/qsp.ts";

const server = useServer();
const init = { protocolVersion: "v1", hashFunc: 7 };

/**
 * Makes one call.
 *
 * @param more members of initOptions and of the request
 */
async function ask(
  reference: string,
  methodName: string,
  args: object = {},
  { stdin = "", more = {}, options = server.place() as RunOptions } = {},
) {
  const initOptions = { ...init, keyResourceID: reference, ...more };
  const request = JSON.stringify({ initOptions, methodName, [methodName]: args });
  const { code, stdout } = await qsp(["sigstore-kms", "v1", request], { ...options, stdin });
  return { code, ...JSON.parse(stdout) };
}

const decode = (base64: string): Buffer => Buffer.from(base64, "base64");
const sha512 = (text: string): Buffer => createHash("sha512").update(text).digest();
const withDigest = (digest: Buffer, more = {}) => ({
  signOptions: { messageOptions: { digest: digest.toString("base64"), ...more } },
});

describe("qsp sigstore-kms", { timeout }, () => {
  it("creates a named key once and always returns its public key", async () => {
    const first = await ask("name/once", "createKey", { algorithm: "ML-DSA-87" });
    const again = await ask("name/once", "createKey", { algorithm: "ML-DSA-87" });
    const found = await ask("name/once", "publicKey");
    const { publicKeyPEM } = first.createKey;
    expect([again.createKey, found.publicKey]).toEqual([{ publicKeyPEM }, { publicKeyPEM }]);
    expect(createPublicKey(decode(publicKeyPEM)).asymmetricKeyType).toBe("ml-dsa-87");
  });

  it.each([
    ["name/other", { algorithm: "rsa-2048" }, /"rsa-2048" is not supported; use one of ML-DSA-44/],
    ["name/other", { algorithm: "SLH-DSA-SHA2-128s" }, /not supported/],
    ["name/other", {}, /not supported/],
    ["key-1", { algorithm: "ML-DSA-65" }, /needs a name: use qsp:\/\/name\/release/],
    ["name/other/2", { algorithm: "ML-DSA-65" }, /./],
    ["name/taken", { algorithm: "ML-DSA-44" }, /is ACTIVE and uses ML-DSA-65/],
  ])("does not create %s with %j", async (reference, args, message) => {
    if (reference === "name/taken") await ask(reference, "createKey", { algorithm: "ML-DSA-65" });
    expect((await ask(reference, "createKey", args)).errorMessage).toMatch(message);
  });

  it("signs standard input with a key ID or a name, and verifies it", async () => {
    const { result } = await server.client(KmsService).createKey({ name: "signing" });
    for (const reference of ["name/signing", "qsp://name/signing", result?.keyId ?? ""]) {
      const { signMessage } = await ask(reference, "signMessage", {}, { stdin: "hello" });
      const signature = decode(signMessage.signature);
      expect(verify(null, Buffer.from("hello"), result?.publicKeyPem ?? "", signature)).toBe(true);
      const verified = (stdin: string) => ask(reference, "verifySignature", signMessage, { stdin });
      expect(await verified("hello")).toEqual({ code: 0, verifySignature: {} });
      expect(await verified("hellO")).toMatchObject({ code: 2, errorMessage: "the signature is not valid" });
    }
  });

  it("signs the message if a digest comes with it, and the digest only if there is no message", async () => {
    const { result } = await server.client(KmsService).createKey({ name: "digests" });
    const sign = (stdin: string, digest: Buffer) =>
      ask("name/digests", "signMessage", withDigest(digest), { stdin });
    const isOf = (message: Uint8Array | string, { signMessage }: { signMessage: { signature: string } }) =>
      verify(null, Buffer.from(message), result?.publicKeyPem ?? "", decode(signMessage.signature));
    expect(isOf("hello", await sign("hello", sha512("hello")))).toBe(true);
    expect(isOf(sha512("hello"), await sign("", sha512("hello")))).toBe(true);
    // The server cannot sign an empty message.
    expect((await sign("", sha512(""))).errorMessage).toMatch(/INVALID_ARGUMENT/);
    const [other, short] = [await sign("hello", sha512("hellO")), await sign("", Buffer.alloc(10))];
    expect(other.errorMessage).toBe("the digest does not match the sha512 of the message");
    expect(short.errorMessage).toBe("the digest has 10 bytes; sha512 has 64");
    const { auditLog } = await server.client(KmsService).getAuditLog({ keyId: result?.keyId ?? "" });
    const signed = auditLog.filter(({ operation, outcome }) => operation === "SIGN" && outcome === "OK");
    expect(signed).toHaveLength(2);
  });

  it("prefers the call's hash function to the one from initialization", async () => {
    await ask("name/hashes", "createKey", { algorithm: "ML-DSA-44" });
    const digest = createHash("sha256").update("hello").digest();
    const sign = (hashFunc: number, stdin: string) =>
      ask("name/hashes", "signMessage", withDigest(digest, { hashFunc }), { stdin });
    expect(await sign(5, "hello")).toMatchObject({ code: 0 });
    expect((await sign(17, "")).errorMessage).toMatch(/hashFunc 17/);
  });

  it("stops at the deadline at any stage, and makes no call if it has passed", async () => {
    const late = { ctxDeadline: "2020-01-01T00:00:00Z" };
    const passed = "the deadline 2020-01-01T00:00:00.000Z has passed";
    const answers = [
      await ask("name/x", "createKey", { algorithm: "ML-DSA-65", ...late }),
      await ask("name/x", "publicKey", { publicKeyOptions: { rpcOptions: late } }),
      await ask("name/x", "signMessage", { signOptions: { rpcOptions: late } }),
      await ask("name/x", "verifySignature", { signature: "", verifyOptions: { rpcOptions: late } }),
      await ask("name/x", "defaultAlgorithm", {}, { more: late }),
      await ask("name/x", "defaultAlgorithm", {}, { more: { rpcOptions: late } }),
    ];
    expect(answers.map(({ errorMessage }) => errorMessage)).toEqual(Array(6).fill(passed));
    const ctxDeadline = new Date(Date.now() + 1500).toISOString();
    const initOptions = { ...init, keyResourceID: "name/once", ctxDeadline };
    await ask("name/once", "createKey", { algorithm: "ML-DSA-87" });
    const request = JSON.stringify({ initOptions, methodName: "signMessage", signMessage: {} });
    // Standard input stays open.
    const { stdout } = await runQsp(["sigstore-kms", "v1", request], { ...server.place(), stdin: null });
    expect(JSON.parse(stdout).errorMessage).toMatch(/deadline .* has passed/);
  });

  const known = { ...init, keyResourceID: "x" };
  it.each<[Readonly<Record<string, unknown>> | readonly never[], RegExp]>([
    [{ version: "v2", methodName: "defaultAlgorithm" }, /version "v2"/],
    [{ initOptions: { protocolVersion: "v9" }, methodName: "defaultAlgorithm" }, /version "v9"/],
    [{}, /methodName is not a string/],
    [{ methodName: "constructor" }, /method "constructor" is not supported/],
    [{ methodName: "" }, /method "" is not supported/],
    [{ initOptions: init, methodName: "publicKey" }, /keyResourceID is not a string/],
    [{ initOptions: { ...known, hashFunc: "7" }, methodName: "signMessage" }, /hashFunc/],
    [{ initOptions: { ...known, ctxDeadline: "soon" }, methodName: "publicKey" }, /ctxDeadline/],
    [{ initOptions: { ...known, rpcOptions: { keyVersion: "2" } }, methodName: "publicKey" }, /keyVersion/],
    [{ methodName: "verifySignature", verifySignature: { signature: "!" } }, /signature is not base64/],
    [[], /must be a JSON object/],
    [{ initOptions: [] }, /initOptions is not an object/],
  ])("answers %j with a JSON error", async (given, message) => {
    const { version = "v1", ...members }: Readonly<Record<string, unknown>> = { ...given };
    const request = Array.isArray(given) ? given : { initOptions: known, ...members };
    const line = ["sigstore-kms", String(version), JSON.stringify(request)];
    const { code, stdout } = await qsp(line, server.place());
    expect([code, JSON.parse(stdout).errorMessage]).toEqual([2, expect.stringMatching(message)]);
  });

  it("answers with a JSON error if the server is unknown, unreachable or refuses the call", async () => {
    const place = server.place();
    const at = async (url: string) =>
      (await ask("name/none", "publicKey", {}, { options: { ...place, url } })).errorMessage;
    expect(await at("nonsense")).toMatch(/lacks http:/);
    expect(await at("http://127.0.0.1:1")).toMatch(/cannot be reached/);
    expect(await at(server.url)).toMatch(/KEY_NOT_FOUND/);
  });
});

describe("the plugin's caller", { timeout }, () => {
  const { place, loggedIn, tokenOf } = useGuardedServer();

  it("is the user of QSP_TOKEN or of the log-in, and no answer contains a token", async () => {
    const [ada, bob] = [await loggedIn("ada"), await loggedIn("bob")];
    await qspDone(["kms", "create", "--name", "released"], ada);
    await qspDone(["kms", "grant", "name/released", "bob", "--operations", "SIGN,GET_KEY"], ada);
    const initOptions = { protocolVersion: "v1", keyResourceID: "user/ada/name/released" };
    const ask = async (options: RunOptions) => {
      const request = JSON.stringify({ initOptions, methodName: "signMessage", signMessage: {} });
      return (await qsp(["sigstore-kms", "v1", request], { ...options, stdin: "hello" })).stdout;
    };
    const token = tokenOf(bob);
    const signed = { signMessage: { signature: expect.any(String) } };
    expect(JSON.parse(await ask(bob))).toEqual(signed);
    expect(JSON.parse(await ask({ ...place(), env: { QSP_TOKEN: token } }))).toEqual(signed);
    expect(JSON.parse(await ask(place())).errorMessage).toMatch(/TOKEN_MISSING/);
    const refused = await ask({ ...place(), env: { QSP_TOKEN: `${token}x` } });
    expect(JSON.parse(refused).errorMessage).toMatch(/TOKEN_/);
    expect(refused).not.toContain(token.slice(-40));
  });
});
