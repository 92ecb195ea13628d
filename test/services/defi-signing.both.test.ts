import { expect, it } from "vitest";
import { DefiService } from "#gen/defi/defi_service_pb.ts";
import { flipBit } from "../support/bytes.ts";
import { outcomesOf, refusal } from "../support/refusal.ts";
import { verifiesOutside } from "./node-crypto.ts";
import { data, type Owner, propose, proposeToOwners, readProposal } from "./proposals.ts";
import { describeReplicas, describeService } from "./service-server.ts";

const counted = { code: "AlreadyExists", reason: "ALREADY_SIGNED" };
const unknownSigner = { code: "PermissionDenied", reason: "SIGNER_UNKNOWN" };
const notSigned = { code: "InvalidArgument", reason: "SIGNATURE_INVALID" };

describeService("DefiService.SignProposal", DefiService, (_start, shared) => {
  it("signs the signing hash for a signer whose key the service stores", async () => {
    const { client, tamper } = await shared();
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
    const { client } = await shared();
    const { proposalId, signingHash, owners } = await proposeToOwners(client);
    for (const { sign, signer } of owners)
      await client.signProposal({ proposalId, signer, signature: sign(signingHash) });
    const { proposal, executed } = await client.executeProposal({ proposalId });
    expect([executed, proposal?.signedBy]).toEqual([true, owners.map(({ signer }) => signer)]);
  });

  it("accepts a signer's address in upper case", async () => {
    const { client } = await shared();
    const { proposalId, signers } = await propose(client);
    const [signer = ""] = signers;
    const upper = `0x${signer.slice(2).toUpperCase()}`;
    const { proposal } = await client.signProposal({ proposalId, signer: upper });
    expect(proposal?.signedBy).toEqual([signer]);
  });

  it("requires a signature from a signer that keeps its own key", async () => {
    const { client } = await shared();
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
    const { client } = await shared();
    const { proposalId, signingHash, owners } = await proposeToOwners(client);
    const signature = make(signingHash, ...owners);
    const call = client.signProposal({ proposalId, signer: owners[0].signer, signature });
    expect(await refusal(call)).toEqual(notSigned);
    expect(await readProposal(client, proposalId)).toMatchObject({ signatureCount: 0, signedBy: [] });
  });

  it("rejects a signer of no wallet or of another wallet", async () => {
    const { client } = await shared();
    const { proposalId } = await propose(client);
    const other = await propose(client);
    for (const signer of [`0x${"0".repeat(40)}`, other.signers[0] ?? ""])
      expect(await refusal(client.signProposal({ proposalId, signer }))).toEqual(unknownSigner);
    expect((await readProposal(client, proposalId)).signatureCount).toBe(0);
  });

  it("counts a signer once", async () => {
    const { client } = await shared();
    const { proposalId, signers } = await propose(client, { signed: 1 });
    const call = client.signProposal({ proposalId, signer: signers[0] ?? "" });
    expect(await refusal(call)).toEqual(counted);
    expect((await readProposal(client, proposalId)).signedBy).toEqual(signers.slice(0, 1));
  });

  it("counts all racing signers", async () => {
    const { client } = await shared();
    const { proposalId, signers } = await propose(client, { signerCount: 20, threshold: 20 });
    await Promise.all(signers.map((signer) => client.signProposal({ proposalId, signer })));
    const { signedBy, signatureCount } = await readProposal(client, proposalId);
    expect(signatureCount).toBe(20);
    expect(signedBy.toSorted()).toEqual(signers.toSorted());
    expect((await client.executeProposal({ proposalId })).executed).toBe(true);
  });

  it("rejects an unknown proposal", async () => {
    const { client } = await shared();
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
