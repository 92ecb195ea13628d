import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { WalletService } from "#gen/wallet/wallet_service_pb.ts";
import { bytesOf, flipBit, unbase64 } from "../support/bytes.ts";
import { refusal } from "../support/refusal.ts";
import { invalid, reused, wrongKey, wrongLength } from "../support/refusals.ts";
import { readPages, restRefusal } from "./answers.ts";
import { anAddress, anId, aPem, aTime, base64Of } from "./expected.ts";
import { addressOf, verifiesOutside } from "./node-crypto.ts";
import { countRepeated, describeService, freshOrder, readSecret } from "./service-server.ts";

const data = bytesOf("pay 5 to bob");
const unknown = { code: "NotFound", reason: "WALLET_NOT_FOUND" };

/** A wallet and a signature that it made. */
async function signed(wallet: Client<typeof WalletService>) {
  const made = await wallet.createWallet({});
  const { signature } = await wallet.signTransaction({ walletId: made.walletId, data });
  return { ...made, signature };
}

describeService("WalletService over REST", WalletService, (start, shared) => {
  it("POST /api/wallet/create makes a wallet of an empty request", async () => {
    const { rest } = await shared();
    const { status, json } = await rest("POST /api/wallet/create", {});
    expect(status).toBe(200);
    expect(json).toEqual({
      status: "success",
      walletId: anId("wallet"),
      address: anAddress,
      publicKey: base64Of(1952),
      publicKeyPem: aPem,
      algorithm: "ML-DSA-65",
      createdAt: aTime,
      label: "",
    });
  });

  it("POST /api/wallet/{walletId}/sign-transaction signs, POST /api/wallet/verify-transaction verifies", async () => {
    const { rest } = await shared();
    const { json: wallet } = await rest("POST /api/wallet/create", { label: "till 7" });
    const { publicKey, publicKeyPem, address } = wallet;
    const request = { data: data.toBase64() };
    const signing = await rest(`POST /api/wallet/${wallet.walletId}/sign-transaction`, request);
    expect(signing.json).toEqual({
      status: "success",
      signature: base64Of(3309),
      publicKey,
      publicKeyPem,
      address,
    });
    const { signature } = signing.json;
    const whole = { ...request, signature, publicKey };
    const verdict = await rest("POST /api/wallet/verify-transaction", whole);
    expect(verdict.json).toEqual({ status: "success", valid: true, address });
    const other = await rest("POST /api/wallet/verify-transaction", { ...whole, data: "eA==" });
    expect(other.json).toEqual({ status: "success", valid: false, address });
  });

  it("GET /api/wallet/list lists wallets, GET /api/wallet/health counts them", async () => {
    const { rest } = await start();
    expect((await rest("GET /api/wallet/list")).json).toEqual({
      status: "success",
      wallets: [],
      nextPageToken: "",
      totalSize: 0,
    });
    const { json } = await rest("POST /api/wallet/create", { label: "till 7" });
    const { status: _, publicKeyPem: __, ...wallet } = json;
    const { json: listed } = await rest("GET /api/wallet/list");
    expect(listed).toEqual({ status: "success", wallets: [wallet], nextPageToken: "", totalSize: 1 });
    const { json: health } = await rest("GET /api/wallet/health");
    expect(health).toEqual({ status: "success", serviceStatus: "UP", walletCount: 1 });
  });

  it.each([
    ["POST /api/wallet/create", { label: 5 }, "label"],
    ["POST /api/wallet/create", { name: "x" }, "name"],
    ["POST /api/wallet/wallet-x/sign-transaction", { data: "%" }, "data"],
    ["POST /api/wallet/wallet-x/sign-transaction", {}, "data"],
    ["POST /api/wallet/verify-transaction", { data: "eA==", signature: "eA==", key: "" }, "key"],
    ["GET /api/wallet/list?pageSize=1001", undefined, "pageSize"],
    ["GET /api/wallet/list?pageToken=x", undefined, "pageToken"],
  ])("%s refuses %j: it names %s", async (line, body, field) => {
    const { rest } = await shared();
    expect(restRefusal(await rest(line, body))).toEqual({
      status: 400,
      code: "INVALID_ARGUMENT",
      reason: expect.stringMatching(/^(FIELD_INVALID|JSON_INVALID|FIELD_CONTRADICTION)$/),
      fields: [field],
    });
  });

  it.each(["owner=x", "pageSize=1&pageSize=2"])("GET /api/wallet/list?%s is refused", async (query) => {
    const { rest } = await shared();
    const answer = await rest(`GET /api/wallet/list?${query}`);
    expect(restRefusal(answer)).toMatchObject({
      status: 400,
      reason: expect.stringMatching(/^PARAMETER_(UNKNOWN|DUPLICATE)$/),
    });
  });

  it("answers 404 for an unknown wallet", async () => {
    const { rest } = await shared();
    const answer = await rest("POST /api/wallet/wallet-x/sign-transaction", { data: "eA==" });
    expect(restRefusal(answer)).toMatchObject({ status: 404, code: "NOT_FOUND", reason: "WALLET_NOT_FOUND" });
  });
});

describeService("WalletService", WalletService, (start, shared) => {
  it("gives the address of the public key: the first 20 bytes of its SHA-256", async () => {
    const { client } = await shared();
    const { publicKey, address, walletId } = await client.createWallet({});
    expect(address).toBe(addressOf(publicKey));
    expect((await client.signTransaction({ walletId, data })).address).toBe(address);
  });

  it.each(["publicKey", "publicKeyPem"] as const)(
    "makes signatures that %s verifies outside",
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

  it("makes each wallet with a key of its own", async () => {
    const { client } = await shared();
    const wallets = await Promise.all(Array.from({ length: 5 }, () => client.createWallet({})));
    expect(new Set(wallets.map(({ address }) => address)).size).toBe(5);
    expect(new Set(wallets.map(({ walletId }) => walletId)).size).toBe(5);
  });

  it("tells when a wallet was made", async () => {
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

  it("has the secret key in no answer", async () => {
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
    "verifies with %s, and tells whose address it is",
    async (field) => {
      const { client } = await shared();
      const { signature, address, ...wallet } = await signed(client);
      const request = { data, signature, [field]: wallet[field] };
      expect(await client.verifyTransaction(request)).toMatchObject({ valid: true, address });
      const changed = { ...request, signature: flipBit(signature, 20) };
      expect(await client.verifyTransaction(changed)).toMatchObject({ valid: false, address });
    },
  );

  it("verifies no signature of another wallet", async () => {
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
    ["a key of ML-DSA-44", { publicKey: new Uint8Array(1312) }, wrongKey("publicKey")],
    [
      "what is no PEM",
      { publicKey: new Uint8Array(), publicKeyPem: "-----BEGIN-----" },
      wrongKey("publicKeyPem"),
    ],
    ["two keys", { publicKeyPem: "-----BEGIN-----" }, { code: "InvalidArgument", reason: "FIELD_INVALID" }],
    ["no key", { publicKey: new Uint8Array() }, { code: "InvalidArgument", reason: "FIELD_INVALID" }],
  ])("refuses to verify %s", async (_what, change, expected) => {
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
  ])("refuses to sign with %s", async (_what, request, expected) => {
    const { client } = await shared();
    expect(await refusal(client.signTransaction(request))).toEqual(expected);
  });

  it.each([
    ["256 characters", "a".repeat(256)],
    ["a line break", "a\nb"],
  ])("refuses a label with %s", async (_what, label) => {
    const { client } = await shared();
    expect(await refusal(client.createWallet({ label }))).toEqual(invalid("label"));
  });

  it("takes a label of 255 characters of any script", async () => {
    const { client } = await shared();
    const label = "ж".repeat(255);
    expect((await client.createWallet({ label })).label).toBe(label);
  });

  it("lists in the order of creation, page by page", async () => {
    const { client } = await start();
    const made: string[] = [];
    for (let i = 0; i < 5; i += 1) made.push((await client.createWallet({ label: `${i}` })).walletId);
    const pages = await readPages(
      (pageToken) => client.listWallets({ pageSize: 2, pageToken }),
      ({ wallets }) => wallets.map(({ walletId }) => walletId),
    );
    expect(pages).toEqual({ rows: made, sizes: [2, 2, 1], totals: [5] });
    const whole = await client.listWallets({});
    expect(whole.wallets.map(({ walletId }) => walletId)).toEqual(made);
    expect(whole.nextPageToken).toBe("");
  });

  it.each([
    ["a size below 0", { pageSize: -1 }, "pageSize"],
    ["a size above 1000", { pageSize: 1001 }, "pageSize"],
    [
      "a token of another list",
      { pageToken: Buffer.from("1.0123456789abcdef").toString("base64url") },
      "pageToken",
    ],
  ])("refuses a page with %s", async (_what, request, field) => {
    const { client } = await shared();
    expect(await refusal(client.listWallets(request))).toEqual(invalid(field));
  });

  it("of one Idempotency-Key makes one wallet, also for 20 callers at once, and refuses another request", async () => {
    const { client } = await start();
    const counts = await countRepeated((order) => client.createWallet({ label: "one" }, order));
    expect(counts).toEqual({ distinctOfTwo: 1, distinctOf20: 1 });
    expect((await client.getHealth({})).walletCount).toBe(2);
    const order = freshOrder();
    await client.createWallet({ label: "one" }, order);
    expect(await refusal(client.createWallet({ label: "other" }, order))).toEqual(reused);
  });
});
