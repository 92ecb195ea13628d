import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { WalletService } from "#gen/wallet/wallet_service_pb.ts";
import { bytesOf, flipBit, unbase64 } from "../support/bytes.ts";
import { refusal } from "../support/refusal.ts";
import { invalid, wrongKey, wrongLength } from "../support/refusals.ts";
import { addressOf, verifiesOutside } from "./node-crypto.ts";
import { describeService, freshOrder, readSecret } from "./service-server.ts";

const data = bytesOf("pay 5 to bob");
const unknown = { code: "NotFound", reason: "WALLET_NOT_FOUND" };

/** Creates a wallet and a signature with it. */
async function signed(wallet: Client<typeof WalletService>) {
  const made = await wallet.createWallet({});
  const { signature } = await wallet.signTransaction({ walletId: made.walletId, data });
  return { ...made, signature };
}

describeService("WalletService", WalletService, (start, shared) => {
  it("derives the address from the public key: the first 20 bytes of its SHA-256", async () => {
    const { client } = await shared();
    const { publicKey, address, walletId } = await client.createWallet({});
    expect(address).toBe(addressOf(publicKey));
    expect((await client.signTransaction({ walletId, data })).address).toBe(address);
  });

  it.each(["publicKey", "publicKeyPem"] as const)(
    "creates signatures that %s verifies outside the server",
    async (field) => {
      const { client } = await shared();
      const { walletId, ...wallet } = await client.createWallet({});
      const { signature, ...answer } = await client.signTransaction({ walletId, data });
      expect(signature).toHaveLength(3309);
      expect(answer[field]).toEqual(wallet[field]);
      expect(verifiesOutside(wallet[field], data, signature)).toBe(true);
      expect(verifiesOutside(wallet[field], bytesOf("pay 6 to bob"), signature)).toBe(false);
    },
  );

  it("creates each wallet with its own key", async () => {
    const { client } = await shared();
    const wallets = await Promise.all(Array.from({ length: 5 }, () => client.createWallet({})));
    expect(new Set(wallets.map(({ address }) => address)).size).toBe(5);
    expect(new Set(wallets.map(({ walletId }) => walletId)).size).toBe(5);
  });

  it("returns when a wallet was created", async () => {
    const { client } = await shared();
    const before = Date.now();
    const { createdAt } = await client.createWallet({});
    expect(createdAt && timestampDate(createdAt).getTime()).toBeGreaterThanOrEqual(before);
    expect(createdAt && timestampDate(createdAt).getTime()).toBeLessThanOrEqual(Date.now());
  });

  it("signs with a wallet after a restart", async () => {
    const before = await start();
    const { walletId, publicKey } = await before.client.createWallet({});
    await before.close();
    const { client } = await start(before.database);
    const { signature } = await client.signTransaction({ walletId, data });
    expect(verifiesOutside(publicKey, data, signature)).toBe(true);
  });

  it("never returns the secret key", async () => {
    const { rest, close, database } = await start();
    const { text, json } = await rest("POST /api/wallet/create", {}, freshOrder().headers);
    const id = String(json.walletId);
    const texts = [text];
    for (const line of [`POST /api/wallet/${id}/sign-transaction`, "GET /api/wallet/list"])
      texts.push((await rest(line, line.startsWith("POST") ? { data: "eA==" } : undefined)).text);
    await close();
    const secret = Buffer.from((await readSecret(database, `wallets/${id}/secret-key`)) ?? "");
    expect(secret).toHaveLength(32);
    const bytes = texts.flatMap((one) => [...one.matchAll(/"([A-Za-z0-9+/=]{40,})"/g)]).map(([, b]) => b);
    expect(bytes).toContain(json.publicKey);
    expect(bytes.filter((one) => unbase64(one).includes(secret))).toEqual([]);
    expect(texts.filter((one) => one.includes(secret.toString("hex")))).toEqual([]);
  });

  it.each(["publicKey", "publicKeyPem"] as const)(
    "verifies with %s, and returns the address of the key",
    async (field) => {
      const { client } = await shared();
      const { signature, address, ...wallet } = await signed(client);
      const request = { data, signature, [field]: wallet[field] };
      expect(await client.verifyTransaction(request)).toMatchObject({ valid: true, address });
      const changed = { ...request, signature: flipBit(signature, 20) };
      expect(await client.verifyTransaction(changed)).toMatchObject({ valid: false, address });
    },
  );

  it("rejects a signature from another wallet", async () => {
    const { client } = await shared();
    const { signature } = await signed(client);
    const { publicKey, address } = await client.createWallet({});
    const answer = await client.verifyTransaction({ data, signature, publicKey });
    expect(answer).toMatchObject({ valid: false, address });
  });

  it.each([
    ["a signature that is too short", { signature: new Uint8Array(3308) }, wrongLength("signature")],
    ["a signature that is too long", { signature: new Uint8Array(3310) }, wrongLength("signature")],
    ["no signature", { signature: new Uint8Array() }, invalid("signature")],
    ["no data", { data: new Uint8Array() }, invalid("data")],
    ["a key that is too short", { publicKey: new Uint8Array(1951) }, wrongKey("publicKey")],
    ["an ML-DSA-44 key", { publicKey: new Uint8Array(1312) }, wrongKey("publicKey")],
    [
      "text that is not PEM",
      { publicKey: new Uint8Array(), publicKeyPem: "-----BEGIN-----" },
      wrongKey("publicKeyPem"),
    ],
    ["two keys", { publicKeyPem: "-----BEGIN-----" }, { code: "InvalidArgument", reason: "FIELD_INVALID" }],
    ["no key", { publicKey: new Uint8Array() }, { code: "InvalidArgument", reason: "FIELD_INVALID" }],
  ])("rejects %s on verification", async (_what, change, expected) => {
    const { client } = await shared();
    const { signature, publicKey } = await signed(client);
    const call = client.verifyTransaction({ data, signature, publicKey, ...change });
    expect(await refusal(call)).toMatchObject(expected);
  });

  it.each([
    ["an unknown wallet", { walletId: "wallet-x", data }, unknown],
    ["no wallet", { walletId: "", data }, invalid("walletId")],
    ["no data", { walletId: "wallet-x" }, invalid("data")],
    ["a walletId of 256 characters", { walletId: "w".repeat(256), data }, invalid("walletId")],
  ])("rejects signing with %s", async (_what, request, expected) => {
    const { client } = await shared();
    expect(await refusal(client.signTransaction(request))).toEqual(expected);
  });

  it.each([
    ["256 characters", "a".repeat(256)],
    ["a line break", "a\nb"],
  ])("rejects a label with %s", async (_what, label) => {
    const { client } = await shared();
    expect(await refusal(client.createWallet({ label }))).toEqual(invalid("label"));
  });

  it("accepts a label of 255 characters in any script", async () => {
    const { client } = await shared();
    const label = "ж".repeat(255);
    expect((await client.createWallet({ label })).label).toBe(label);
  });
});
