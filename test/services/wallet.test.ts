import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { WalletService } from "#gen/wallet/wallet_service_pb.ts";
import { bytesOf, flipBit, unbase64 } from "../support/bytes.ts";
import { refusal } from "../support/refusal.ts";
import { invalid, wrongKey, wrongLength } from "../support/refusals.ts";
import { present } from "./answers.ts";
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
  it("creates a wallet with its own key and address, which signs what can be verified outside", async () => {
    const { client } = await shared();
    const beforeMs = Date.now();
    const { walletId, createdAt, address, ...wallet } = await client.createWallet({});
    const createdMs = timestampDate(present(createdAt)).getTime();
    expect([createdMs >= beforeMs, createdMs <= Date.now()]).toEqual([true, true]);
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
