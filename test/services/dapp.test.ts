import { expect, it } from "vitest";
import { DappService } from "#gen/dapp/dapp_service_pb.ts";
import { refusal } from "../support/refusal.ts";
import { invalid, reused } from "../support/refusals.ts";
import { readPages, restRefusal } from "./answers.ts";
import { aHash, anId, aPem, aTime, base64Of } from "./expected.ts";
import { sha256, verifiesOutside } from "./node-crypto.ts";
import { countRepeated, describeService, freshOrder } from "./service-server.ts";

describeService("DappService over REST", DappService, (start, shared) => {
  it("POST /api/dapp/deploy-contract deploys, GET /api/dapp/contracts lists", async () => {
    const { rest } = await start();
    const empty = { status: "success", contracts: [], nextPageToken: "", totalSize: 0 };
    expect((await rest("GET /api/dapp/contracts")).json).toEqual(empty);
    const { status, json } = await rest("POST /api/dapp/deploy-contract", { code: "return 1", name: "one" });
    expect(status).toBe(200);
    expect(json).toEqual({
      status: "success",
      contractId: anId("contract"),
      name: "one",
      codeHash: aHash,
      signature: base64Of(3309),
      publicKey: base64Of(1952),
      publicKeyPem: aPem,
      deployedAt: aTime,
    });
    const { status: _, publicKeyPem: __, ...contract } = json;
    expect((await rest("GET /api/dapp/contracts")).json).toEqual({
      ...empty,
      contracts: [contract],
      totalSize: 1,
    });
  });

  it("POST /api/dapp/dual-sign signs twice over, POST /api/dapp/dual-verify verifies", async () => {
    const { rest } = await shared();
    const data = "aGVsbG8=";
    const { json } = await rest("POST /api/dapp/dual-sign", { data });
    expect(json).toEqual({
      status: "success",
      ecdsaSignature: expect.stringMatching(/^MEU|^MEQ|^MEY|^MEM/),
      mldsaSignature: base64Of(3309),
      ecdsaPublicKey: base64Of(65),
      mldsaPublicKey: base64Of(1952),
      ecdsaPublicKeyPem: aPem,
      mldsaPublicKeyPem: aPem,
      compositeSignature: expect.any(String),
      compositePublicKey: base64Of(2017),
      compositePublicKeyPem: aPem,
    });
    const { ecdsaSignature, mldsaSignature, ecdsaPublicKey, mldsaPublicKey } = json;
    const pair = { ecdsaSignature, mldsaSignature, ecdsaPublicKey, mldsaPublicKey };
    const valid = { status: "success", ecdsaValid: true, mldsaValid: true, bothValid: true };
    expect((await rest("POST /api/dapp/dual-verify", { data, ...pair })).json).toEqual(valid);
    const { compositeSignature, compositePublicKey } = json;
    const composite = { data, compositeSignature, compositePublicKey };
    expect((await rest("POST /api/dapp/dual-verify", composite)).json).toEqual(valid);
    const none = { status: "success", ecdsaValid: false, mldsaValid: false, bothValid: false };
    expect((await rest("POST /api/dapp/dual-verify", { ...pair, data: "eA==" })).json).toEqual(none);
  });

  it("GET /api/dapp/health tells that both algorithms work", async () => {
    const { rest } = await shared();
    expect((await rest("GET /api/dapp/health")).json).toEqual({
      ...{ status: "success", serviceStatus: "UP", ecdsaAvailable: true, mlDsa65Available: true },
    });
  });

  it.each([
    ["POST /api/dapp/deploy-contract", { code: "x", language: "js" }, "language"],
    ["POST /api/dapp/deploy-contract", { name: "x" }, "code"],
    ["POST /api/dapp/dual-sign", {}, "data"],
    ["POST /api/dapp/dual-sign", { data: 5 }, "data"],
    ["GET /api/dapp/contracts?pageSize=-1", undefined, "pageSize"],
  ])("%s refuses %j: it names %s", async (line, body, field) => {
    const { rest } = await shared();
    const answer = restRefusal(await rest(line, body));
    expect(answer).toMatchObject({ status: 400, code: "INVALID_ARGUMENT", fields: [field] });
  });
});

describeService("DappService.DeployContract", DappService, (start, shared) => {
  it.each(["return 1", "a\r\n\tb\0", "\ufeffжé e\u0301 \u{1f30c}", " "])(
    "hashes the UTF-8 of %j, and signs the 32 bytes of the hash",
    async (code) => {
      const { client } = await shared();
      const { codeHash, signature, publicKey, publicKeyPem } = await client.deployContract({ code });
      expect(codeHash).toBe(sha256(Buffer.from(code, "utf8")));
      const hash = Buffer.from(codeHash, "hex");
      expect(verifiesOutside(publicKey, hash, signature)).toBe(true);
      expect(verifiesOutside(publicKeyPem, hash, signature)).toBe(true);
      expect(verifiesOutside(publicKey, Buffer.from(codeHash), signature)).toBe(false);
    },
  );

  it("makes a key pair for each contract", async () => {
    const { client } = await shared();
    const one = await client.deployContract({ code: "x" });
    const other = await client.deployContract({ code: "x" });
    expect(one.publicKey).not.toEqual(other.publicKey);
    expect(one.codeHash).toBe(other.codeHash);
    expect(one.contractId).not.toBe(other.contractId);
  });

  it("takes 1 MiB of code", async () => {
    const { client } = await shared();
    const code = "a".repeat(1024 * 1024);
    expect((await client.deployContract({ code })).codeHash).toBe(sha256(code));
  });

  it.each([
    ["no code", { code: "" }, "code"],
    ["a name of 256 characters", { code: "x", name: "a".repeat(256) }, "name"],
    ["a control character in the name", { code: "x", name: "a\tb" }, "name"],
  ])("refuses %s", async (_what, request, field) => {
    const { client } = await shared();
    expect(await refusal(client.deployContract(request))).toEqual(invalid(field));
  });

  it("of one Idempotency-Key deploys once, also for 20 callers at once, and refuses another request", async () => {
    const { client } = await start();
    const counts = await countRepeated((order) => client.deployContract({ code: "x" }, order));
    expect(counts).toEqual({ distinctOfTwo: 1, distinctOf20: 1 });
    expect((await client.listContracts({})).totalSize).toBe(2);
    const order = freshOrder();
    await client.deployContract({ code: "x" }, order);
    expect(await refusal(client.deployContract({ code: "y" }, order))).toEqual(reused);
  });
});

describeService("DappService.ListContracts", DappService, (start, shared) => {
  it("lists in the order of deployment, page by page, whole contracts", async () => {
    const { client } = await start();
    const made: string[] = [];
    for (let i = 0; i < 5; i += 1) made.push((await client.deployContract({ code: `${i}` })).contractId);
    const pages = await readPages(
      (pageToken) => client.listContracts({ pageSize: 2, pageToken }),
      ({ contracts }) => contracts,
    );
    expect(pages).toMatchObject({ sizes: [2, 2, 1], totals: [5] });
    expect(pages.rows.map(({ contractId }) => contractId)).toEqual(made);
    const verified = pages.rows.map(({ codeHash, signature, publicKey }, i) => [
      codeHash === sha256(`${i}`),
      verifiesOutside(publicKey, Buffer.from(codeHash, "hex"), signature),
    ]);
    expect(verified).toEqual(Array(5).fill([true, true]));
  });

  it("ends a page where it would be larger than 3 MiB, and goes on with the next", async () => {
    const { client, tamper } = await start();
    await client.deployContract({ code: "x" });
    await tamper(async (db) => {
      const row = await db.selectFrom("dapp_contracts").selectAll().executeTakeFirstOrThrow();
      const rows = Array.from({ length: 700 }, (_, i) => ({
        ...{ ...row, position: i + 2, contract_id: `contract-${i + 2}` },
      }));
      for (let i = 0; i < 700; i += 100)
        await db
          .insertInto("dapp_contracts")
          .values(rows.slice(i, i + 100))
          .execute();
      await db.updateTable("list_counts").set({ row_count: 701 }).execute();
    });
    const pages = await readPages(
      (pageToken) => client.listContracts({ pageToken }),
      ({ contracts }) => contracts.map(({ contractId }) => contractId),
    );
    // In JSON a contract has its signature and its key in base64, and some hundred bytes of text.
    const [firstPage = 0, ...others] = pages.sizes;
    const keysInBase64 = ((3309 + 1952) * 4) / 3;
    expect(firstPage).toBeLessThan((3 * 1024 * 1024) / keysInBase64);
    expect(firstPage).toBeGreaterThan((3 * 1024 * 1024) / (keysInBase64 + 600));
    expect([firstPage + others.reduce((sum, size) => sum + size, 0), pages.totals]).toEqual([701, [701]]);
    expect(new Set(pages.rows).size).toBe(701);
  });

  it.each([
    ["a size above 1000", { pageSize: 1001 }, "pageSize"],
    ["a token of no list", { pageToken: "bm8" }, "pageToken"],
    [
      "a token of another list",
      { pageToken: Buffer.from("1.0123456789abcdef").toString("base64url") },
      "pageToken",
    ],
  ])("refuses a page with %s", async (_what, request, field) => {
    const { client } = await shared();
    expect(await refusal(client.listContracts(request))).toEqual(invalid(field));
  });
});
