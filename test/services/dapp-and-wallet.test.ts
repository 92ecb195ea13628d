import { createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from "node:crypto";
import type { Client } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { DappService } from "#gen/dapp/dapp_service_pb.ts";
import { WalletService } from "#gen/wallet/wallet_service_pb.ts";
import { bytesOf, flipBit, unbase64 } from "../support/bytes.ts";
import { refusal } from "../support/refusal.ts";
import { fieldInvalid, wrongKey, wrongLength } from "../support/refusals.ts";
import { expectTimeSince } from "../support/times.ts";
import { addressOf, sha256, verifiesOutside } from "./node-crypto.ts";
import { describeService, freshOrder, readSecret } from "./service-server.ts";

describeService("DappService.DeployContract", DappService, ({ client }) => {
  it.each(["return 1", "a\r\n\tb\0", "\ufeffжé e\u0301 \u{1f30c}", " "])(
    "hashes the UTF-8 of %j, and signs the 32 bytes of the hash",
    async (code) => {
      const { codeHash, signature, publicKey, publicKeyPem } = await client.deployContract({ code });
      expect(codeHash).toBe(sha256(Buffer.from(code, "utf8")));
      const hash = Buffer.from(codeHash, "hex");
      expect(verifiesOutside(publicKey, hash, signature)).toBe(true);
      expect(verifiesOutside(publicKeyPem, hash, signature)).toBe(true);
      expect(verifiesOutside(publicKey, Buffer.from(codeHash), signature)).toBe(false);
    },
  );

  it("creates a key pair for each contract", async () => {
    const one = await client.deployContract({ code: "x" });
    const other = await client.deployContract({ code: "x" });
    expect(one.publicKey).not.toEqual(other.publicKey);
    expect(one.codeHash).toBe(other.codeHash);
    expect(one.contractId).not.toBe(other.contractId);
  });
});

const data = bytesOf("attack at dawn");

type Pair = Awaited<ReturnType<typeof signPair>>;

async function signPair(client: Client<typeof DappService>) {
  const { ecdsaSignature, mldsaSignature, ecdsaPublicKey, mldsaPublicKey } = await client.dualSign({ data });
  return { data, ecdsaSignature, mldsaSignature, ecdsaPublicKey, mldsaPublicKey };
}

async function signAsComposite(client: Client<typeof DappService>) {
  const { compositeSignature, compositePublicKey } = await client.dualSign({ data });
  return { data, compositeSignature, compositePublicKey };
}

/** SubjectPublicKeyInfo of a P-256 point, up to the point (RFC 5480). */
const p256Spki = Buffer.from("3059301306072a8648ce3d020106082a8648ce3d030107034200", "hex");

function p256Key(point: Uint8Array): KeyObject {
  return createPublicKey({ key: Buffer.concat([p256Spki, point]), format: "der", type: "spki" });
}

describeService("DappService.DualSign", DappService, ({ client }) => {
  it("returns ECDSA and ML-DSA-65 signatures that other software verifies, with raw keys and with PEM", async () => {
    const signed = await client.dualSign({ data });
    const { ecdsaSignature, mldsaSignature, ecdsaPublicKey, mldsaPublicKey } = signed;
    expect([ecdsaPublicKey.length, ecdsaPublicKey[0]]).toEqual([65, 4]);
    expect(verify("sha256", data, p256Key(ecdsaPublicKey), ecdsaSignature)).toBe(true);
    expect(verify("sha256", data, createPublicKey(signed.ecdsaPublicKeyPem), ecdsaSignature)).toBe(true);
    expect(verifiesOutside(mldsaPublicKey, data, mldsaSignature)).toBe(true);
    expect(verifiesOutside(signed.mldsaPublicKeyPem, data, mldsaSignature)).toBe(true);
  });

  it("generates all keys anew, and separate keys for the composite", async () => {
    const all = [await client.dualSign({ data }), await client.dualSign({ data })].flatMap((signed) => [
      signed.mldsaPublicKey,
      signed.compositePublicKey.subarray(0, 1952),
      signed.ecdsaPublicKey,
      signed.compositePublicKey.subarray(1952),
    ]);
    expect(new Set(all.map((key) => Buffer.from(key).toString("hex"))).size).toBe(8);
  });
});

describeService("DappService.DualVerify", DappService, ({ client }) => {
  it.each(["der", "ieee-p1363"] as const)("accepts an ECDSA signature in %s", async (dsaEncoding) => {
    const { mldsaSignature, mldsaPublicKey } = await signPair(client);
    const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const ecdsaPublicKeyPem = publicKey.export({ type: "spki", format: "pem" }).toString();
    const ecdsaSignature = sign("sha256", data, { key: privateKey, dsaEncoding });
    const request = { data, ecdsaSignature, mldsaSignature, ecdsaPublicKeyPem, mldsaPublicKey };
    const expected = { ecdsaValid: true, mldsaValid: true, bothValid: true };
    expect(await client.dualVerify(request)).toMatchObject(expected);
  });

  it("accepts the ML-DSA key as PEM", async () => {
    const { mldsaPublicKeyPem, ...signed } = await client.dualSign({ data });
    const { ecdsaSignature, mldsaSignature, ecdsaPublicKeyPem } = signed;
    const request = { data, ecdsaSignature, mldsaSignature, ecdsaPublicKeyPem, mldsaPublicKeyPem };
    expect(await client.dualVerify(request)).toMatchObject({ bothValid: true });
  });

  type Change = (one: Pair, other: Pair) => Partial<Pair>;
  const ecdsaFlipped: Change = (one) => ({ ecdsaSignature: flipBit(one.ecdsaSignature, 20) });
  const mldsaFlipped: Change = (one) => ({ mldsaSignature: flipBit(one.mldsaSignature, 20) });
  it.each<[what: string, ecdsa: boolean, mldsa: boolean, change: Change]>([
    ["data", false, false, () => ({ data: bytesOf("attack at noon") })],
    ["ECDSA signature", false, true, ecdsaFlipped],
    ["ECDSA signature, r and s of 0,", false, true, () => ({ ecdsaSignature: new Uint8Array(64) })],
    ["ECDSA signature, no DER,", false, true, () => ({ ecdsaSignature: new Uint8Array(70) })],
    ["ECDSA key", false, true, (_, { ecdsaPublicKey }) => ({ ecdsaPublicKey })],
    ["ML-DSA signature", true, false, mldsaFlipped],
    ["ML-DSA key", true, false, (_, { mldsaPublicKey }) => ({ mldsaPublicKey })],
  ])("with a different %s returns ecdsaValid %s, mldsaValid %s", async (_what, ecdsa, mldsa, change) => {
    const [one, other] = [await signPair(client), await signPair(client)];
    const answer = await client.dualVerify({ ...one, ...change(one, other) });
    expect(answer).toMatchObject({ ecdsaValid: ecdsa, mldsaValid: mldsa, bothValid: false });
  });

  const notOnCurve = new Uint8Array(65).fill(4);
  const notPem = { mldsaPublicKey: new Uint8Array(), mldsaPublicKeyPem: "x" };
  it.each([
    ["a short ML-DSA signature", { mldsaSignature: new Uint8Array(3308) }, wrongLength("mldsaSignature")],
    ["an ECDSA signature of 7 bytes", { ecdsaSignature: new Uint8Array(7) }, wrongLength("ecdsaSignature")],
    ["an ECDSA signature of 73 bytes", { ecdsaSignature: new Uint8Array(73) }, wrongLength("ecdsaSignature")],
    ["a point of 64 bytes", { ecdsaPublicKey: new Uint8Array(64) }, wrongKey("ecdsaPublicKey")],
    ["a point not on the curve", { ecdsaPublicKey: notOnCurve }, wrongKey("ecdsaPublicKey")],
    ["a short ML-DSA key", { mldsaPublicKey: new Uint8Array(1951) }, wrongKey("mldsaPublicKey")],
    ["text that is not PEM", notPem, wrongKey("mldsaPublicKeyPem")],
    ["two ECDSA keys", { ecdsaPublicKeyPem: "x" }, fieldInvalid],
    ["two ML-DSA keys", { mldsaPublicKeyPem: "x" }, fieldInvalid],
    ["no ECDSA key", { ecdsaPublicKey: new Uint8Array() }, fieldInvalid],
    ["no ML-DSA signature", { mldsaSignature: new Uint8Array() }, fieldInvalid],
    ["no ECDSA signature", { ecdsaSignature: new Uint8Array() }, fieldInvalid],
    ["a composite signature too", { compositeSignature: new Uint8Array(3380) }, fieldInvalid],
    ["a composite key too", { compositePublicKey: new Uint8Array(2017) }, fieldInvalid],
    ["a composite key as PEM too", { compositePublicKeyPem: "x" }, fieldInvalid],
  ])("rejects %s", async (_what, change, expected) => {
    const request = { ...(await signPair(client)), ...change };
    expect(await refusal(client.dualVerify(request))).toMatchObject(expected);
  });
});

describeService("DappService.DualVerify with a composite", DappService, ({ client }) => {
  it("verifies with the key raw or as PEM, but not with a component's key", async () => {
    const { compositeSignature, compositePublicKey, ...pem } = await client.dualSign({ data });
    const valid = { ecdsaValid: true, mldsaValid: true, bothValid: true };
    for (const key of [{ compositePublicKey }, { compositePublicKeyPem: pem.compositePublicKeyPem }])
      expect(await client.dualVerify({ data, compositeSignature, ...key })).toMatchObject(valid);
    const component = { compositePublicKeyPem: pem.mldsaPublicKeyPem };
    const call = client.dualVerify({ data, compositeSignature, ...component });
    expect(await refusal(call)).toEqual(wrongKey("compositePublicKeyPem"));
  });

  it.each([
    ["ML-DSA half", 20, { ecdsaValid: true, mldsaValid: false, bothValid: false }],
    ["ECDSA half", 3309 + 20, { ecdsaValid: false, mldsaValid: true, bothValid: false }],
  ])("detects that the %s was changed", async (_half, at, expected) => {
    const request = await signAsComposite(client);
    const compositeSignature = flipBit(request.compositeSignature, at);
    expect(await client.dualVerify({ ...request, compositeSignature })).toMatchObject(expected);
  });

  it.each([
    ["a short signature", { compositeSignature: new Uint8Array(3309) }, wrongLength("compositeSignature")],
    ["a key of 2016 bytes", { compositePublicKey: new Uint8Array(2016) }, wrongKey("compositePublicKey")],
    ["a key without a point", { compositePublicKey: new Uint8Array(2017) }, wrongKey("compositePublicKey")],
    ["no signature", { compositeSignature: new Uint8Array() }, fieldInvalid],
    ["no key", { compositePublicKey: new Uint8Array() }, fieldInvalid],
    ["a PEM key too", { compositePublicKeyPem: "x" }, fieldInvalid],
    ["an ECDSA key too", { ecdsaPublicKeyPem: "x" }, fieldInvalid],
    ["an ML-DSA signature too", { mldsaSignature: new Uint8Array(3309) }, fieldInvalid],
  ])("rejects %s", async (_what, change, expected) => {
    const request = { ...(await signAsComposite(client)), ...change };
    expect(await refusal(client.dualVerify(request))).toMatchObject(expected);
  });
});

/** Creates a wallet and a signature with it. */
async function signed(wallet: Client<typeof WalletService>) {
  const made = await wallet.createWallet({});
  const { signature } = await wallet.signTransaction({ walletId: made.walletId, data });
  return { ...made, signature };
}

describeService("WalletService", WalletService, ({ client, start }) => {
  it("creates a wallet with its own key and address, which signs what can be verified outside", async () => {
    const beforeMs = Date.now();
    const { walletId, createdAt, address, ...wallet } = await client.createWallet({});
    expectTimeSince(beforeMs, createdAt);
    expect(address).toBe(addressOf(wallet.publicKey));
    const { signature, ...answer } = await client.signTransaction({ walletId, data });
    expect(answer.address).toBe(address);
    for (const field of ["publicKey", "publicKeyPem"] as const) {
      expect(answer[field]).toEqual(wallet[field]);
      expect(verifiesOutside(wallet[field], data, signature)).toBe(true);
    }
    expect((await client.createWallet({})).address).not.toBe(address);
  });

  it("never returns the secret key", async () => {
    const server = await start();
    const { rest } = server;
    const { text, json } = await rest("POST /api/wallet/create", {}, freshOrder().headers);
    const id = String(json.walletId);
    const texts = [text];
    for (const line of [`POST /api/wallet/${id}/sign-transaction`, "GET /api/wallet/list"])
      texts.push((await rest(line, line.startsWith("POST") ? { data: "eA==" } : undefined)).text);
    await server.close();
    const secret = Buffer.from((await readSecret(server, `wallets/${id}/secret-key`)) ?? "");
    expect(secret).toHaveLength(32);
    const bytes = texts.flatMap((one) => [...one.matchAll(/"([A-Za-z0-9+/=]{40,})"/g)]).map(([, b]) => b);
    expect(bytes).toContain(json.publicKey);
    expect(bytes.filter((one) => unbase64(one).includes(secret))).toEqual([]);
    expect(texts.filter((one) => one.includes(secret.toString("hex")))).toEqual([]);
  });

  it.each(["publicKey", "publicKeyPem"] as const)(
    "verifies with %s, and returns the address of the key",
    async (field) => {
      const { signature, address, ...wallet } = await signed(client);
      const request = { data, signature, [field]: wallet[field] };
      expect(await client.verifyTransaction(request)).toMatchObject({ valid: true, address });
      const changed = { ...request, signature: flipBit(signature, 20) };
      expect(await client.verifyTransaction(changed)).toMatchObject({ valid: false, address });
    },
  );

  const noKey = { publicKey: new Uint8Array() };
  it.each([
    ["a signature that is too short", { signature: new Uint8Array(3308) }, wrongLength("signature")],
    ["a signature that is too long", { signature: new Uint8Array(3310) }, wrongLength("signature")],
    ["a key that is too short", { publicKey: new Uint8Array(1951) }, wrongKey("publicKey")],
    ["text that is not PEM", { ...noKey, publicKeyPem: "-----BEGIN-----" }, wrongKey("publicKeyPem")],
    ["two keys", { publicKeyPem: "-----BEGIN-----" }, fieldInvalid],
    ["no key", noKey, fieldInvalid],
  ])("rejects %s on verification", async (_what, change, expected) => {
    const { signature, publicKey } = await signed(client);
    const call = client.verifyTransaction({ data, signature, publicKey, ...change });
    expect(await refusal(call)).toMatchObject(expected);
  });
});
