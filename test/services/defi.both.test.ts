import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import type { Kysely } from "kysely";
import { expect, it, onTestFinished, vi } from "vitest";
import { DefiService, type Proposal } from "#gen/defi/defi_service_pb.ts";
import type { Schema } from "../../src/database/schema.ts";
import { bytesOf, flipBit } from "../support/bytes.ts";
import { describeRefusal, failureOf, outcomesOf, refusal } from "../support/refusal.ts";
import { damaged, fieldInvalid, invalid, wrongKey } from "../support/refusals.ts";
import { present, readPages } from "./answers.ts";
import { addressOf, makeSigner, type Signer, sha256, verifiesOutside } from "./node-crypto.ts";
import { describeReplicas, describeService } from "./service-server.ts";

type DefiClient = Client<typeof DefiService>;

const data = bytesOf("pay 5 to bob");

type Proposed = Awaited<ReturnType<typeof propose>>;

/** Creates a proposal in a wallet whose signers' keys the service stores; some signers sign it. */
async function propose(
  client: DefiClient,
  { signerCount = 3, threshold = 2, signed = 0, expiresAt = undefined as Date | undefined } = {},
) {
  const { walletId, signers } = await client.createMultisig({ signerCount, threshold });
  const end = expiresAt && { expiresAt: timestampFromDate(expiresAt) };
  const { proposal } = await client.createProposal({ walletId, data, ...end });
  const { proposalId, signingHash } = present(proposal);
  for (const signer of signers.slice(0, signed)) await client.signProposal({ proposalId, signer });
  return { proposalId, signers, signingHash };
}

/** Creates a proposal in a wallet whose signers keep their own keys. */
async function proposeToOwners(client: DefiClient) {
  const pairs = [makeSigner("ml-dsa-65"), makeSigner("ml-dsa-65")];
  const signerPublicKeys = pairs.map(({ publicKey }) => publicKey);
  const { walletId, signers } = await client.createMultisig({ signerPublicKeys, threshold: 2 });
  const { proposal } = await client.createProposal({ walletId, data });
  const { proposalId, signingHash } = present(proposal);
  const owners = pairs.map(({ sign }, i) => ({ sign, signer: signers[i] ?? "" }));
  return { proposalId, signingHash, owners: owners as [Owner, Owner] };
}

/** A signer that keeps its own key. */
interface Owner extends Pick<Signer, "sign"> {
  readonly signer: string;
}

/** Reads a proposal from the list. */
async function readProposal(client: DefiClient, proposalId: string): Promise<Proposal> {
  const { rows } = await readPages(
    (pageToken) => client.listProposals({ pageToken }),
    ({ proposals }) => proposals,
  );
  return present(rows.find((one) => one.proposalId === proposalId));
}

const noWallet = { code: "NotFound", reason: "WALLET_NOT_FOUND" };

/** Returns the raw public key of a signer that keeps its own secret key. */
const ownKey = () => makeSigner("ml-dsa-65").publicKey;

describeService("DefiService.CreateMultisig", DefiService, ({ client }) => {
  it.each([
    [1, 1],
    [3, 2],
    [100, 100],
  ])("creates %i signers, of whom %i must sign", async (signerCount, threshold) => {
    const wallet = await client.createMultisig({ signerCount, threshold });
    expect(wallet.threshold).toBe(threshold);
    expect(new Set(wallet.signers).size).toBe(signerCount);
  });

  it("accepts signers' public keys, and returns their addresses in order", async () => {
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
    expect(await refusal(client.createMultisig(request))).toMatchObject(expected);
  });
});

describeService("DefiService.CreateProposal", DefiService, ({ client }) => {
  const inAnHour = { seconds: BigInt(Math.floor(Date.now() / 1000) + 3600), nanos: 120_000_000 };

  it.each([
    ["a title and an expiry time", { title: 'ж "a" \\ \u2028', expiresAt: inAnHour }],
    ["neither", {}],
    ["a title that is a number", { title: "7" }],
  ])("returns the hash to sign for a proposal with %s", async (_what, more) => {
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
    const request = { walletId: "multisig-x", data, ...change };
    expect(await refusal(client.createProposal(request))).toEqual(expected);
  });
});

describeService("DefiService lists", DefiService, ({ start }) => {
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

const counted = { code: "AlreadyExists", reason: "ALREADY_SIGNED" };
const unknownSigner = { code: "PermissionDenied", reason: "SIGNER_UNKNOWN" };
const notSigned = { code: "InvalidArgument", reason: "SIGNATURE_INVALID" };

describeService("DefiService.SignProposal", DefiService, ({ client, tamper }) => {
  it("signs the signing hash for a signer whose key the service stores", async () => {
    const { proposalId, signers, signingHash } = await propose(client);
    const [signer = ""] = signers;
    const { proposal } = await client.signProposal({ proposalId, signer });
    expect(proposal).toMatchObject({ signatureCount: 1, signedBy: [signer], proposalStatus: "PENDING" });
    await tamper(async (db) => {
      const row = db
        .selectFrom("defi_signatures")
        .innerJoin("defi_signers", (join) =>
          join.onRef("defi_signers.address", "=", "defi_signatures.signer"),
        );
      const { public_key, signature } = await row
        .select(["public_key", "signature"])
        .where("proposal_id", "=", proposalId)
        .executeTakeFirstOrThrow();
      expect(verifiesOutside(public_key, signingHash, signature)).toBe(true);
    });
  });

  it("accepts a signature that a signer made with its own key", async () => {
    const { proposalId, signingHash, owners } = await proposeToOwners(client);
    for (const { sign, signer } of owners)
      await client.signProposal({ proposalId, signer, signature: sign(signingHash) });
    const { proposal, executed } = await client.executeProposal({ proposalId });
    expect([executed, proposal?.signedBy]).toEqual([true, owners.map(({ signer }) => signer)]);
  });

  it("accepts a signer's address in upper case", async () => {
    const { proposalId, signers } = await propose(client);
    const [signer = ""] = signers;
    const upper = `0x${signer.slice(2).toUpperCase()}`;
    const { proposal } = await client.signProposal({ proposalId, signer: upper });
    expect(proposal?.signedBy).toEqual([signer]);
  });

  it("requires a signature from a signer that keeps its own key", async () => {
    const { proposalId, owners } = await proposeToOwners(client);
    const call = client.signProposal({ proposalId, signer: owners[0].signer });
    expect(await refusal(call)).toEqual({ code: "FailedPrecondition", reason: "SIGNATURE_MISSING" });
    expect(await readProposal(client, proposalId)).toMatchObject({ signatureCount: 0, signedBy: [] });
  });

  it.each<[string, (hash: Uint8Array, one: Owner, other: Owner) => Uint8Array<ArrayBuffer>]>([
    ["over other bytes", (hash, { sign }) => sign(flipBit(hash, 20))],
    ["by another signer", (hash, _, { sign }) => sign(hash)],
    ["over the data", (_, { sign }) => sign(data)],
    ["of nothing", () => new Uint8Array(3309)],
  ])("rejects a signature %s, and does not count it", async (_what, make) => {
    const { proposalId, signingHash, owners } = await proposeToOwners(client);
    const signature = make(signingHash, ...owners);
    const call = client.signProposal({ proposalId, signer: owners[0].signer, signature });
    expect(await refusal(call)).toEqual(notSigned);
    expect(await readProposal(client, proposalId)).toMatchObject({ signatureCount: 0, signedBy: [] });
  });

  it("rejects a signer of no wallet or of another wallet", async () => {
    const { proposalId } = await propose(client);
    const other = await propose(client);
    for (const signer of [`0x${"0".repeat(40)}`, other.signers[0] ?? ""])
      expect(await refusal(client.signProposal({ proposalId, signer }))).toEqual(unknownSigner);
    expect((await readProposal(client, proposalId)).signatureCount).toBe(0);
  });

  it("counts a signer once", async () => {
    const { proposalId, signers } = await propose(client, { signed: 1 });
    const call = client.signProposal({ proposalId, signer: signers[0] ?? "" });
    expect(await refusal(call)).toEqual(counted);
    expect((await readProposal(client, proposalId)).signedBy).toEqual(signers.slice(0, 1));
  });

  it("counts all racing signers", async () => {
    const { proposalId, signers } = await propose(client, { signerCount: 20, threshold: 20 });
    await Promise.all(signers.map((signer) => client.signProposal({ proposalId, signer })));
    const { signedBy, signatureCount } = await readProposal(client, proposalId);
    expect(signatureCount).toBe(20);
    expect(signedBy.toSorted()).toEqual(signers.toSorted());
    expect((await client.executeProposal({ proposalId })).executed).toBe(true);
  });

  it("rejects an unknown proposal", async () => {
    const request = { proposalId: "proposal-x", signer: `0x${"0".repeat(40)}` };
    const unknown = { code: "NotFound", reason: "PROPOSAL_NOT_FOUND" };
    expect(await refusal(client.signProposal(request))).toEqual(unknown);
  });
});

describeReplicas("DefiService.SignProposal", DefiService, (startTwo) => {
  it("counts one of 64 signatures by one signer, 32 on each of two servers", async () => {
    const [here, there] = await startTwo();
    const { proposalId, signers } = await propose(here.client);
    const signer = signers[0] ?? "";
    const calls = Array.from({ length: 64 }, (_, i) =>
      (i % 2 ? here : there).client.signProposal({ proposalId, signer }),
    );
    expect(await outcomesOf(calls)).toEqual({ answered: 1, refusals: Array(63).fill(counted) });
  });
});

const executedAlready = { code: "FailedPrecondition", reason: "PROPOSAL_EXECUTED" };
const expired = { code: "FailedPrecondition", reason: "PROPOSAL_EXPIRED" };
const tooFew = { code: "FailedPrecondition", reason: "THRESHOLD_NOT_REACHED" };
const hour = 3_600_000;

describeService("DefiService.ExecuteProposal", DefiService, ({ client }) => {
  it("executes once enough signers have signed, and returns the time", async () => {
    const { proposalId, signers } = await propose(client, { signed: 2 });
    const { proposal, executed, executedAt } = await client.executeProposal({ proposalId });
    expect(executed).toBe(true);
    expect(proposal).toMatchObject({ proposalStatus: "EXECUTED", signedBy: signers.slice(0, 2) });
    expect(proposal?.executedAt).toEqual(executedAt);
    expect(await readProposal(client, proposalId)).toEqual(proposal);
  });

  it("rejects a proposal below the threshold, names both numbers, and leaves it PENDING", async () => {
    const { proposalId, signers } = await propose(client, { signerCount: 9, threshold: 7, signed: 4 });
    const failure = await failureOf(client.executeProposal({ proposalId }));
    expect(describeRefusal(failure)).toEqual(tooFew);
    expect(failure.rawMessage).toMatch(/\b4\b.*\b7\b/);
    expect((await readProposal(client, proposalId)).proposalStatus).toBe("PENDING");
    for (const signer of signers.slice(4, 6)) await client.signProposal({ proposalId, signer });
    expect(await refusal(client.executeProposal({ proposalId }))).toEqual(tooFew);
    await client.signProposal({ proposalId, signer: signers[6] ?? "" });
    expect((await client.executeProposal({ proposalId })).executed).toBe(true);
  });

  it("executes only once, and accepts no signature afterwards", async () => {
    const { proposalId, signers } = await propose(client, { signed: 2 });
    await client.executeProposal({ proposalId });
    expect(await refusal(client.executeProposal({ proposalId }))).toEqual(executedAlready);
    const late = client.signProposal({ proposalId, signer: signers[2] ?? "" });
    expect(await refusal(late)).toEqual(executedAlready);
    expect((await readProposal(client, proposalId)).signatureCount).toBe(2);
  });

  it("accepts no signature and does not execute after expiry", async () => {
    const expiresAt = new Date(Date.now() + hour);
    const { proposalId, signers } = await propose(client, { signed: 2, expiresAt });
    expect(timestampDate(present((await readProposal(client, proposalId)).expiresAt))).toEqual(expiresAt);
    onTestFinished(() => void vi.useRealTimers());
    vi.setSystemTime(expiresAt);
    const late = client.signProposal({ proposalId, signer: signers[2] ?? "" });
    expect(await refusal(late)).toEqual(expired);
    expect(await refusal(client.executeProposal({ proposalId }))).toEqual(expired);
    vi.setSystemTime(expiresAt.getTime() - 10_000);
    expect((await client.executeProposal({ proposalId })).executed).toBe(true);
  });
});

describeReplicas("DefiService.ExecuteProposal", DefiService, (startTwo) => {
  it("lets one of 64 racing callers win, 32 on each of two servers", async () => {
    const [here, there] = await startTwo();
    const { proposalId } = await propose(here.client, { signed: 2 });
    const calls = Array.from({ length: 64 }, (_, i) =>
      (i % 2 ? here : there).client.executeProposal({ proposalId }),
    );
    expect(await outcomesOf(calls)).toEqual({ answered: 1, refusals: Array(63).fill(executedAlready) });
  });
});

type Change = (db: Kysely<Schema>, proposed: Proposed) => Promise<unknown>;

const proposalRow =
  (change: Partial<Schema["defi_proposals"]>): Change =>
  (db, { proposalId }) =>
    db.updateTable("defi_proposals").set(change).where("proposal_id", "=", proposalId).execute();
const signatureRow =
  (changeOf: (signature: Uint8Array) => Uint8Array): Change =>
  async (db, { proposalId, signers }) => {
    const [signer = ""] = signers;
    const rows = db.selectFrom("defi_signatures").selectAll().where("proposal_id", "=", proposalId);
    const { signature } = await rows.where("signer", "=", signer).executeTakeFirstOrThrow();
    const update = db.updateTable("defi_signatures").set({ signature: changeOf(signature) });
    await update.where("proposal_id", "=", proposalId).where("signer", "=", signer).execute();
  };

const withoutSignature: Change = (db, { proposalId, signers: [signer = ""] }) => {
  const rows = db.deleteFrom("defi_signatures").where("proposal_id", "=", proposalId);
  return rows.where("signer", "=", signer).execute();
};
const withoutSigner: Change = (db, { signers: [signer = ""] }) =>
  db.deleteFrom("defi_signers").where("address", "=", signer).execute();
const otherKey: Change = async (db, { signers: [signer = "", other = ""] }) => {
  const rows = db.selectFrom("defi_signers").selectAll();
  const { public_key } = await rows.where("address", "=", other).executeTakeFirstOrThrow();
  await db.updateTable("defi_signers").set({ public_key }).where("address", "=", signer).execute();
};

describeService("a proposal that was tampered with in the database", DefiService, ({ client, tamper }) => {
  it.each<[string, Change]>([
    ["a stored signature", signatureRow((signature) => flipBit(signature, 20))],
    ["a stored signature, which was deleted,", withoutSignature],
    ["data", proposalRow({ data: bytesOf("pay 500 to mallory") })],
    ["signer's public key", otherKey],
    ["signer, who was deleted,", withoutSigner],
  ])("does not execute after tampering with its %s", async (_what, change) => {
    const [one, other] = [await propose(client, { signed: 2 }), await propose(client, { signed: 2 })];
    await tamper((db) => change(db, one));
    expect(await refusal(client.executeProposal({ proposalId: one.proposalId }))).toEqual(damaged);
    expect((await client.executeProposal({ proposalId: other.proposalId })).executed).toBe(true);
  });

  it("cannot be reset to PENDING", async () => {
    const proposed = await propose(client, { signed: 2 });
    await client.executeProposal({ proposalId: proposed.proposalId });
    await tamper((db) => proposalRow({ proposal_status: "PENDING" })(db, proposed));
    expect(await refusal(client.executeProposal({ proposalId: proposed.proposalId }))).toEqual(damaged);
  });
});
