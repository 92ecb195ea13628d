import type { Client } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { WalletService } from "#gen/wallet/wallet_service_pb.ts";
import { bytesOf, flipBit, unbase64 } from "../support/bytes.ts";
import { refusal } from "../support/refusal.ts";
import { fieldInvalid, wrongKey, wrongLength } from "../support/refusals.ts";
import { expectTimeSince } from "../support/times.ts";
import { addressOf, verifiesOutside } from "./node-crypto.ts";
import { describeService, freshOrder, readSecret } from "./service-server.ts";

const data = bytesOf("pay 5 to bob");

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
      const { client } = await shared();
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
    const { client } = await shared();
    const { signature, publicKey } = await signed(client);
    const call = client.verifyTransaction({ data, signature, publicKey, ...change });
    expect(await refusal(call)).toMatchObject(expected);
  });
});
