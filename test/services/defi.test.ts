import { timestampDate } from "@bufbuild/protobuf/wkt";
import { expect, it } from "vitest";
import { DefiService } from "#gen/defi/defi_service_pb.ts";
import { bytesOf } from "../support/bytes.ts";
import { refusal } from "../support/refusal.ts";
import { fieldInvalid, invalid, wrongKey } from "../support/refusals.ts";
import { present, readPages } from "./answers.ts";
import { addressOf, makeSigner, sha256 } from "./node-crypto.ts";
import { describeService } from "./service-server.ts";

const data = bytesOf("pay 5 to bob");
const noWallet = { code: "NotFound", reason: "WALLET_NOT_FOUND" };

/** Returns the raw public key of a signer that keeps its own secret key. */
const ownKey = () => makeSigner("ml-dsa-65").publicKey;

describeService("DefiService.CreateMultisig", DefiService, (_start, shared) => {
  it.each([
    [1, 1],
    [3, 2],
    [100, 100],
  ])("creates %i signers, of whom %i must sign", async (signerCount, threshold) => {
    const { client } = await shared();
    const wallet = await client.createMultisig({ signerCount, threshold });
    expect(wallet.threshold).toBe(threshold);
    expect(new Set(wallet.signers).size).toBe(signerCount);
  });

  it("accepts signers' public keys, and returns their addresses in order", async () => {
    const { client } = await shared();
    const signerPublicKeys = [ownKey(), ownKey()];
    const { signers } = await client.createMultisig({ signerPublicKeys, threshold: 2 });
    expect(signers).toEqual(signerPublicKeys.map(addressOf));
  });

  const key = ownKey();
  const [keys, shortKey] = [{ signerPublicKeys: [key] }, { signerPublicKeys: [key, key.subarray(1)] }];
  it.each([
    ["a threshold of 0", { signerCount: 3, threshold: 0 }, fieldInvalid],
    ["a threshold above signerCount", { signerCount: 3, threshold: 4 }, fieldInvalid],
    ["no signers", { threshold: 1 }, fieldInvalid],
    ["signerCount and keys", { ...keys, signerCount: 1, threshold: 1 }, fieldInvalid],
    ["a threshold above the number of keys", { ...keys, threshold: 2 }, fieldInvalid],
    ["a duplicate key", { signerPublicKeys: [key, key], threshold: 1 }, invalid("signerPublicKeys")],
    ["a key that is too short", { ...shortKey, threshold: 1 }, wrongKey("signerPublicKeys[1]")],
  ])("rejects %s", async (_what, request, expected) => {
    const { client } = await shared();
    expect(await refusal(client.createMultisig(request))).toMatchObject(expected);
  });
});

describeService("DefiService.CreateProposal", DefiService, (_start, shared) => {
  const inAnHour = { seconds: BigInt(Math.floor(Date.now() / 1000) + 3600), nanos: 120_000_000 };

  it.each([
    ["a title and an expiry time", { title: 'ж "a" \\ \u2028', expiresAt: inAnHour }],
    ["neither", {}],
    ["a title that is a number", { title: "7" }],
  ])("returns the hash to sign for a proposal with %s", async (_what, more) => {
    const { client } = await shared();
    const { walletId } = await client.createMultisig({ signerCount: 3, threshold: 2 });
    const request = { walletId, data: Buffer.from([0, 0xff, 0x3e, 0x3f]), ...more };
    const proposal = present((await client.createProposal(request)).proposal);
    const createdAt = timestampDate(present(proposal.createdAt)).toISOString();
    const expiresAt = proposal.expiresAt ? timestampDate(proposal.expiresAt).toISOString() : "";
    expect(proposal.expiresAt).toEqual("expiresAt" in more ? expect.objectContaining(inAnHour) : undefined);
    const members = [
      `"createdAt":"${createdAt}"`,
      `"data":"AP8+Pw=="`,
      `"expiresAt":"${expiresAt}"`,
      `"proposalId":"${proposal.proposalId}"`,
      `"purpose":"defi proposal"`,
      `"threshold":2`,
      `"title":${JSON.stringify(proposal.title)}`,
      `"walletId":"${walletId}"`,
    ];
    expect(Buffer.from(proposal.signingHash).toString("hex")).toBe(sha256(`{${members.join()}}`));
  });

  it("accepts the last time of .NET, and rounds it down to milliseconds", async () => {
    const { client } = await shared();
    const { walletId } = await client.createMultisig({ signerCount: 1, threshold: 1 });
    const expiresAt = { seconds: 253_402_300_799n, nanos: 999_999_900 };
    const { proposal } = await client.createProposal({ walletId, data, expiresAt });
    expect(proposal?.expiresAt).toMatchObject({ ...expiresAt, nanos: 999_000_000 });
    expect((await client.listProposals({ walletId })).proposals).toEqual([proposal]);
  });

  it.each([
    ["an unknown wallet", {}, noWallet],
    ["an expiry time in the past", { expiresAt: { seconds: 1n } }, invalid("expiresAt")],
  ])("rejects %s", async (_what, change, expected) => {
    const { client } = await shared();
    const request = { walletId: "multisig-x", data, ...change };
    expect(await refusal(client.createProposal(request))).toEqual(expected);
  });
});

describeService("DefiService lists", DefiService, (start) => {
  it("return wallets and proposals in creation order, page by page, with filters", async () => {
    const { client } = await start();
    const make = async () => (await client.createMultisig({ signerCount: 1, threshold: 1 })).walletId;
    const walletIds = [await make(), await make(), await make()];
    const wallets = await readPages(
      (pageToken) => client.listWallets({ pageSize: 2, pageToken }),
      (page) => page.wallets.map(({ walletId }) => walletId),
    );
    expect(wallets).toEqual({ rows: walletIds, sizes: [2, 1], totals: [3] });
    const ids: string[] = [];
    const [one = "", other = ""] = walletIds;
    for (const walletId of [one, other, one, one, other])
      ids.push(present((await client.createProposal({ walletId, data })).proposal).proposalId);
    const { signers } = present((await client.listWallets({})).wallets[0]);
    const [first = "", second, third = "", fourth, fifth] = ids;
    for (const proposalId of [first, third]) {
      await client.signProposal({ proposalId, signer: signers[0] ?? "" });
      await client.executeProposal({ proposalId });
    }
    const read = (filter: { walletId?: string; proposalStatus?: string }) =>
      readPages(
        (pageToken) => client.listProposals({ ...filter, pageSize: 2, pageToken }),
        ({ proposals }) => proposals.map(({ proposalId }) => proposalId),
      );
    const list = (...rows: unknown[]) => ({ rows, totals: [rows.length] });
    expect(await read({})).toMatchObject({ ...list(...ids), sizes: [2, 2, 1] });
    expect(await read({ walletId: one })).toMatchObject(list(first, third, fourth));
    expect(await read({ proposalStatus: "PENDING" })).toMatchObject(list(second, fourth, fifth));
    expect(await read({ proposalStatus: "EXECUTED" })).toMatchObject(list(first, third));
    expect(await read({ walletId: one, proposalStatus: "PENDING" })).toMatchObject(list(fourth));
    expect(await read({ walletId: other, proposalStatus: "EXECUTED" })).toMatchObject(list());
    const { nextPageToken } = await client.listProposals({ pageSize: 1 });
    const foreign = client.listProposals({ walletId: one, pageToken: nextPageToken });
    expect(await refusal(foreign)).toEqual(invalid("pageToken"));
    expect(await refusal(client.listWallets({ pageToken: nextPageToken }))).toEqual(invalid("pageToken"));
  });
});
