import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { Kysely } from "kysely";
import { expect, it, onTestFinished, vi } from "vitest";
import { DefiService } from "#gen/defi/defi_service_pb.ts";
import type { Schema } from "../../src/database/schema.ts";
import { bytesOf, flipBit } from "../support/bytes.ts";
import { describeRefusal, failureOf, outcomesOf, refusal } from "../support/refusal.ts";
import { damaged } from "../support/refusals.ts";
import { present } from "./answers.ts";
import { type Proposed, propose, readProposal } from "./proposals.ts";
import { describeReplicas, describeService } from "./service-server.ts";

const executedAlready = { code: "FailedPrecondition", reason: "PROPOSAL_EXECUTED" };
const expired = { code: "FailedPrecondition", reason: "PROPOSAL_EXPIRED" };
const tooFew = { code: "FailedPrecondition", reason: "THRESHOLD_NOT_REACHED" };
const hour = 3_600_000;

describeService("DefiService.ExecuteProposal", DefiService, (_start, shared) => {
  it("executes once enough signers have signed, and returns the time", async () => {
    const { client } = await shared();
    const { proposalId, signers } = await propose(client, { signed: 2 });
    const { proposal, executed, executedAt } = await client.executeProposal({ proposalId });
    expect(executed).toBe(true);
    expect(proposal).toMatchObject({ proposalStatus: "EXECUTED", signedBy: signers.slice(0, 2) });
    expect(proposal?.executedAt).toEqual(executedAt);
    expect(await readProposal(client, proposalId)).toEqual(proposal);
  });

  it("rejects a proposal below the threshold, names both numbers, and leaves it PENDING", async () => {
    const { client } = await shared();
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
    const { client } = await shared();
    const { proposalId, signers } = await propose(client, { signed: 2 });
    await client.executeProposal({ proposalId });
    expect(await refusal(client.executeProposal({ proposalId }))).toEqual(executedAlready);
    const late = client.signProposal({ proposalId, signer: signers[2] ?? "" });
    expect(await refusal(late)).toEqual(executedAlready);
    expect((await readProposal(client, proposalId)).signatureCount).toBe(2);
  });

  it("accepts no signature and does not execute after expiry", async () => {
    const { client } = await shared();
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

describeService("a proposal that was tampered with in the database", DefiService, (_start, shared) => {
  it.each<[string, Change]>([
    ["a stored signature", signatureRow((signature) => flipBit(signature, 20))],
    ["a stored signature, which was deleted,", withoutSignature],
    ["data", proposalRow({ data: bytesOf("pay 500 to mallory") })],
    ["signer's public key", otherKey],
    ["signer, who was deleted,", withoutSigner],
  ])("does not execute after tampering with its %s", async (_what, change) => {
    const { client, tamper } = await shared();
    const [one, other] = [await propose(client, { signed: 2 }), await propose(client, { signed: 2 })];
    await tamper((db) => change(db, one));
    expect(await refusal(client.executeProposal({ proposalId: one.proposalId }))).toEqual(damaged);
    expect((await client.executeProposal({ proposalId: other.proposalId })).executed).toBe(true);
  });

  it("cannot be reset to PENDING", async () => {
    const { client, tamper } = await shared();
    const proposed = await propose(client, { signed: 2 });
    await client.executeProposal({ proposalId: proposed.proposalId });
    await tamper((db) => proposalRow({ proposal_status: "PENDING" })(db, proposed));
    expect(await refusal(client.executeProposal({ proposalId: proposed.proposalId }))).toEqual(damaged);
  });
});
