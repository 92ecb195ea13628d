/** Roots: who decides about them, who signs them, and what their publication changes. */
import { generateKeyPairSync, sign } from "node:crypto";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { expect, it } from "vitest";
import { present } from "../../../test/services/answers.ts";
import { freshOrder } from "../../../test/services/service-server.ts";
import { describeStores } from "../../../test/support/on-both.ts";
import { failureOf, outcomesOf, refusal } from "../../../test/support/refusal.ts";
import { invalid } from "../../../test/support/refusals.ts";
import { type Clock, type Domain, openDomain, repository } from "./open-domain.ts";
import { createSigners, openRepository, publishRoot, signMetadata, toSignRequest } from "./tuf-server.ts";

const day = 24 * 3600 * 1000;

describeStores("a root", (makePlace) => {
  async function open(clock: Clock = { now: new Date() }): Promise<Domain> {
    return openDomain(await (await makePlace()).open(), clock);
  }

  it("is proposed in the current wallet, as the canonical JSON to sign, and expires with its proposal", async () => {
    const domain = await open();
    const { walletId, signers } = await createSigners(domain, 3, 2);
    await domain.tuf.createRepository({ repository, walletId, validity: { rootSeconds: 86_400 } });
    const { proposal } = await domain.tuf.proposeRoot({ repository });
    const { metadata, proposalId, expiresAt, currentThreshold, ...more } = present(proposal);
    const { proposals } = await domain.defi.listProposals({});
    expect(proposals).toMatchObject([
      { proposalId, walletId, data: metadata, expiresAt, title: "TUF root 1 of firmware" },
    ]);
    expect(Buffer.from(metadata).toString()).toMatch(
      /^\{"_type":"root","consistent_snapshot":true,"expires":"/,
    );
    expect({ currentThreshold, ...more }).toMatchObject({
      currentThreshold: 2,
      newThreshold: 2,
      proposalStatus: "PENDING",
    });
    expect(more.signers.map(({ signer }) => signer).sort()).toEqual(
      signers.map(({ signer }) => signer).sort(),
    );
    const { repository: described } = await domain.tuf.getRepository({ repository });
    expect(described).toMatchObject({ rootProposalIds: [proposalId], rootVersion: 0 });
  });

  it("gets a signer's vote and signature together, or neither", async () => {
    const domain = await open();
    const { walletId, signers } = await createSigners(domain, 2, 2);
    await domain.tuf.createRepository({ repository, walletId });
    const proposal = present((await domain.tuf.proposeRoot({ repository })).proposal);
    const [ada, bob] = [present(signers[0]), present(signers[1])];
    const right = toSignRequest(ada, proposal);
    const refusedWith = (request: { vote?: Uint8Array; rootSignature?: Uint8Array }) =>
      refusal(domain.tuf.signRoot({ ...right, ...request }));
    const vote = present(right.vote);
    expect(await refusedWith({ vote: new Uint8Array() })).toMatchObject({ reason: "SIGNATURE_MISSING" });
    const wrongVote = await failureOf(domain.tuf.signRoot({ ...right, vote: right.rootSignature }));
    expect(wrongVote.message).toMatch(/vote: is not the signature/);
    expect(await refusedWith({ rootSignature: vote })).toMatchObject({ reason: "SIGNATURE_INVALID" });
    expect(await refusedWith({ rootSignature: signMetadata(bob, proposal.metadata) })).toMatchObject({
      reason: "SIGNATURE_INVALID",
    });
    const untouched = present((await domain.tuf.getRootProposal(right)).proposal);
    expect(untouched.signers).toMatchObject([
      { hasVoted: false, hasSigned: false },
      { hasVoted: false, hasSigned: false },
    ]);
    const { proposal: signed } = await domain.tuf.signRoot(right);
    const own = present(signed).signers.find(({ signer }) => signer === ada.signer);
    expect(own).toMatchObject({ hasVoted: true, hasSigned: true, isCurrent: true, isNew: true });
    expect(await refusedWith({})).toMatchObject({ reason: "ALREADY_SIGNED" });
    const outsider = {
      signer: `0x${"00".repeat(20)}`,
      privateKey: generateKeyPairSync("ml-dsa-65").privateKey,
    };
    expect(await refusal(domain.tuf.signRoot(toSignRequest(outsider, proposal)))).toMatchObject({
      reason: "SIGNER_UNKNOWN",
    });
  });

  it("can be published once its proposal is executed and both thresholds have signed", async () => {
    const domain = await open();
    const old = await openRepository(domain);
    const next = await createSigners(domain, 2, 2);
    const proposal = present(
      (await domain.tuf.proposeRoot({ repository, walletId: next.walletId })).proposal,
    );
    const { proposalId } = proposal;
    const publish = () => refusal(domain.tuf.publishRoot({ repository, proposalId }));
    expect(await publish()).toMatchObject({ reason: "PROPOSAL_NOT_EXECUTED" });
    const [ada, bob, cid] = old.signers.map(present) as [Signer, Signer, Signer];
    // Votes alone execute the proposal, but do not sign the root.
    for (const { signer, privateKey } of [ada, bob])
      await domain.defi.signProposal({
        proposalId,
        signer,
        signature: sign(null, proposal.signingHash, privateKey),
      });
    await domain.defi.executeProposal({ proposalId });
    expect(await publish()).toMatchObject({ reason: "THRESHOLD_NOT_REACHED" });
    await domain.tuf.signRoot(toSignRequest(ada, proposal, false));
    // The proposal is decided, so a late vote is ignored.
    await domain.tuf.signRoot(toSignRequest(cid, proposal));
    expect(await publish()).toMatchObject({ reason: "THRESHOLD_NOT_REACHED" });
    const [dan, eve] = next.signers.map(present) as [Signer, Signer];
    expect(await refusal(domain.tuf.signRoot(toSignRequest(dan, proposal)))).toMatchObject({
      fields: ["vote"],
    });
    await domain.tuf.signRoot(toSignRequest(dan, proposal, false));
    expect(await publish()).toMatchObject({ reason: "THRESHOLD_NOT_REACHED" });
    await domain.tuf.signRoot(toSignRequest(eve, proposal, false));
    await domain.tuf.publishRoot({ repository, proposalId });
    const root = await domain.read("metadata/2.root.json");
    expect(root.signatures).toHaveLength(4);
    expect(root.signed.roles.root).toMatchObject({ threshold: 2, keyids: { length: 2 } });
    expect(await domain.read("metadata/1.root.json")).toMatchObject({ signed: { version: 1 } });
    expect((await domain.tuf.getRootProposal({ repository, proposalId })).proposal?.proposalStatus).toBe(
      "PUBLISHED",
    );
    // The keys of the other roles are the same, so their metadata are too.
    expect(await domain.read("metadata/timestamp.json")).toMatchObject({ signed: { version: 1 } });
    // Now the new signers decide.
    const third = present((await domain.tuf.proposeRoot({ repository })).proposal);
    expect(third.signers.map(({ signer }) => signer).sort()).toEqual([dan.signer, eve.signer].sort());
  });

  it("is published once, even if callers race for one version", async () => {
    const domain = await open();
    const { signers } = await openRepository(domain);
    const proposals = [];
    for (const expiresAt of [40, 50].map((days) => timestampFromDate(new Date(Date.now() + days * day)))) {
      const proposal = present((await domain.tuf.proposeRoot({ repository, expiresAt })).proposal);
      for (const signer of signers.slice(1)) await domain.tuf.signRoot(toSignRequest(signer, proposal));
      await domain.defi.executeProposal({ proposalId: proposal.proposalId });
      proposals.push(proposal);
    }
    const calls = [...proposals, ...proposals].map(({ proposalId }) =>
      domain.tuf.publishRoot({ repository, proposalId }),
    );
    const { answered, refusals } = await outcomesOf(calls);
    expect(answered).toBe(1);
    expect(refusals.map(({ reason }) => reason)).toEqual(Array(3).fill("ROOT_OUTDATED"));
    const states = await Promise.all(
      proposals.map(
        async ({ proposalId }) =>
          (await domain.tuf.getRootProposal({ repository, proposalId })).proposal?.proposalStatus,
      ),
    );
    expect(states.sort()).toEqual(["OUTDATED", "PUBLISHED"]);
    expect(await domain.has("metadata/3.root.json")).toBe(false);
  });

  it("with a new role key comes with metadata signed by it, and by rotation in kms or newKeys", async () => {
    const domain = await open();
    const { signers } = await openRepository(domain);
    await domain.upload("esp32/draft.bin", "not to be published yet");
    const before = present((await domain.tuf.getRepository({ repository })).repository);
    const keyOf = (role: string, { roles } = before) => present(roles.find((one) => one.role === role)).keyId;
    await domain.kms.rotateKey({ keyId: keyOf("snapshot") });
    const { proposal } = await domain.tuf.proposeRoot({ repository, newKeys: ["targets"] });
    const after = await publishRoot(domain, present(proposal), signers.slice(0, 2));
    expect(keyOf("timestamp", after)).toBe(keyOf("timestamp"));
    const { roles } = (await domain.read("metadata/2.root.json")).signed;
    for (const role of ["targets", "snapshot", "timestamp"]) {
      const path = role === "timestamp" ? "metadata/timestamp.json" : `metadata/2.${role}.json`;
      const { signatures, signed } = await domain.read(path);
      expect(signed.version).toBe(2);
      expect(signatures.map(({ keyid }) => keyid)).toEqual(roles[role]?.keyids);
      if (role !== "timestamp") expect(keyOf(role, after)).not.toBe(keyOf(role));
    }
    expect((await domain.read("metadata/2.targets.json")).signed.targets).toEqual({});
  });

  it("is not published if a key that it needs was destroyed, and nothing of it is visible", async () => {
    const domain = await open();
    const { signers } = await openRepository(domain);
    const proposal = present((await domain.tuf.proposeRoot({ repository, newKeys: ["timestamp"] })).proposal);
    const { keys } = await domain.kms.listKeys({});
    const fresh = present(keys.findLast(({ alias }) => alias === "TUF firmware timestamp"));
    await domain.kms.disableKey({ keyId: fresh.keyId });
    const publishing = publishRoot(domain, proposal, signers.slice(0, 2));
    expect(await refusal(publishing)).toMatchObject({ reason: "KEY_STATE_INVALID" });
    expect(await domain.has("metadata/2.root.json")).toBe(false);
    await domain.kms.enableKey({ keyId: fresh.keyId });
    await domain.tuf.publishRoot({ repository, proposalId: proposal.proposalId });
    expect((await domain.read("metadata/timestamp.json")).signed.version).toBe(2);
  });

  it("must fit into a proposal, and belong to signers who keep their own keys", async () => {
    const domain = await open();
    const many = await createSigners(domain, 20, 2);
    const creating = domain.tuf.createRepository({ repository, walletId: many.walletId });
    expect(await refusal(creating)).toMatchObject({ reason: "ROOT_TOO_LARGE" });
    expect((await domain.kms.listKeys({})).keys).toEqual([]);
    const few = await createSigners(domain, 2, 2);
    await domain.tuf.createRepository({ repository, walletId: few.walletId });
    const growing = domain.tuf.proposeRoot({ repository, walletId: many.walletId });
    expect(await refusal(growing)).toMatchObject({ reason: "ROOT_TOO_LARGE" });
    const fitting = await createSigners(domain, 19, 2);
    await domain.tuf.proposeRoot({ repository, walletId: fitting.walletId });
    const { walletId } = await domain.defi.createMultisig({ signerCount: 2, threshold: 2 });
    expect(await refusal(domain.tuf.proposeRoot({ repository, walletId }))).toMatchObject({
      reason: "WALLET_UNSUITABLE",
    });
  });

  it("is returned to a retry of its proposal, even after it expired", async () => {
    const clock = { now: new Date() };
    const domain = await open(clock);
    await openRepository(domain);
    const expiresAt = timestampFromDate(new Date(clock.now.getTime() + day / 24));
    const retried = freshOrder();
    const propose = () => domain.tuf.proposeRoot({ repository, expiresAt }, retried);
    const { proposal } = await propose();
    clock.now = new Date(clock.now.getTime() + day / 12);
    expect((await propose()).proposal).toEqual(proposal);
    expect(await refusal(domain.tuf.proposeRoot({ repository, expiresAt }))).toEqual(invalid("expiresAt"));
  });

  it("cannot be signed or published after it expired", async () => {
    const clock = { now: new Date() };
    const domain = await open(clock);
    const { signers } = await openRepository(domain);
    const expiresAt = timestampFromDate(new Date(clock.now.getTime() + day));
    const [one, two] = [
      present((await domain.tuf.proposeRoot({ repository, expiresAt })).proposal),
      present((await domain.tuf.proposeRoot({ repository, expiresAt })).proposal),
    ];
    for (const signer of signers.slice(1)) await domain.tuf.signRoot(toSignRequest(signer, one));
    await domain.defi.executeProposal({ proposalId: one.proposalId });
    clock.now = new Date(clock.now.getTime() + 2 * day);
    const expired = { reason: "PROPOSAL_EXPIRED" };
    expect(await refusal(domain.tuf.publishRoot({ repository, proposalId: one.proposalId }))).toMatchObject(
      expired,
    );
    expect(await refusal(domain.tuf.signRoot(toSignRequest(present(signers[0]), two)))).toMatchObject(
      expired,
    );
  });
});

type Signer = Parameters<typeof toSignRequest>[0];
