/** Roots: who decides about them, who signs them, and what their publication changes. */
import { generateKeyPairSync, sign } from "node:crypto";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { expect, it } from "vitest";
import { present } from "../../../test/services/answers.ts";
import { freshOrder } from "../../../test/services/service-server.ts";
import { describeStores } from "../../../test/support/on-both.ts";
import { failureOf, outcomeOf, outcomesOf, refusal } from "../../../test/support/refusal.ts";
import { type Clock, openDomain } from "./open-domain.ts";
import {
  createSigners,
  openRepository,
  proposeRoot,
  publishRoot,
  type RootSigner,
  repository,
  signMetadata,
  toSignRequest,
} from "./tuf-server.ts";

const day = 24 * 3600 * 1000;

describeStores("a root", (makePlace) => {
  async function open(clock: Clock = { now: new Date() }) {
    const domain = await openDomain(await (await makePlace()).open(), clock);
    return {
      ...domain,
      /** How signing a root ends. */
      sign: (...request: Parameters<typeof toSignRequest>) =>
        outcomeOf(domain.tuf.signRoot(toSignRequest(...request))),
      findProposal: async (proposalId: string) =>
        present((await domain.tuf.getRootProposal({ repository, proposalId })).proposal),
    };
  }
  /** With a published root. */
  async function openPublished(clock?: Clock) {
    const domain = await open(clock);
    return { ...domain, ...(await openRepository(domain)) };
  }
  const addressesOf = (signers: readonly { signer: string }[]) => signers.map(({ signer }) => signer).sort();

  it("is proposed in the current wallet, as the canonical JSON to sign, and expires with its proposal", async () => {
    const domain = await open();
    const { walletId, signers } = await createSigners(domain, 3, 2);
    await domain.tuf.createRepository({ repository, walletId, validity: { rootSeconds: 86_400 } });
    const proposal = await proposeRoot(domain);
    const { metadata, proposalId, expiresAt } = proposal;
    const title = "TUF root 1 of firmware";
    expect((await domain.defi.listProposals({})).proposals).toMatchObject([
      { proposalId, walletId, data: metadata, expiresAt, title },
    ]);
    expect(Buffer.from(metadata).toString()).toMatch(
      /^\{"_type":"root","consistent_snapshot":true,"expires":"/,
    );
    expect(proposal).toMatchObject({ currentThreshold: 2, newThreshold: 2, proposalStatus: "PENDING" });
    expect(addressesOf(proposal.signers)).toEqual(addressesOf(signers));
    const { repository: described } = await domain.tuf.getRepository({ repository });
    expect(described).toMatchObject({ rootProposalIds: [proposalId], rootVersion: 0 });
  });

  it("gets a signer's vote and signature together, or neither", async () => {
    const domain = await open();
    const { walletId, signers } = await createSigners(domain, 2, 2);
    await domain.tuf.createRepository({ repository, walletId });
    const proposal = await proposeRoot(domain);
    const [ada, bob] = signers as [RootSigner, RootSigner];
    const right = toSignRequest(ada, proposal);
    const signWith = (request: { vote?: Uint8Array; rootSignature?: Uint8Array }) =>
      outcomeOf(domain.tuf.signRoot({ ...right, ...request }));
    expect(await signWith({ vote: new Uint8Array() })).toBe("SIGNATURE_MISSING");
    const wrongVote = await failureOf(domain.tuf.signRoot({ ...right, vote: right.rootSignature }));
    expect(wrongVote.message).toMatch(/vote: is not the signature/);
    for (const rootSignature of [present(right.vote), signMetadata(bob, proposal.metadata)])
      expect(await signWith({ rootSignature })).toBe("SIGNATURE_INVALID");
    const nothing = { hasVoted: false, hasSigned: false };
    expect((await domain.findProposal(proposal.proposalId)).signers).toMatchObject([nothing, nothing]);
    const { proposal: signed } = await domain.tuf.signRoot(right);
    const own = present(signed).signers.find(({ signer }) => signer === ada.signer);
    expect(own).toMatchObject({ hasVoted: true, hasSigned: true, isCurrent: true, isNew: true });
    expect(await signWith({})).toBe("ALREADY_SIGNED");
    const { privateKey } = generateKeyPairSync("ml-dsa-65");
    expect(await domain.sign({ signer: `0x${"00".repeat(20)}`, privateKey }, proposal)).toBe(
      "SIGNER_UNKNOWN",
    );
  });

  it("can be published once its proposal is executed and both thresholds have signed", async () => {
    const domain = await openPublished();
    const { tuf, defi, sign: signRoot } = domain;
    const next = await createSigners(domain, 2, 2);
    const proposal = await proposeRoot(domain, { walletId: next.walletId });
    const { proposalId } = proposal;
    const publish = () => outcomeOf(tuf.publishRoot({ repository, proposalId }));
    expect(await publish()).toBe("PROPOSAL_NOT_EXECUTED");
    const [ada, bob, cid] = domain.signers as [RootSigner, RootSigner, RootSigner];
    // Votes alone execute the proposal, but do not sign the root.
    for (const { signer, privateKey } of [ada, bob])
      await defi.signProposal({
        proposalId,
        signer,
        signature: sign(null, proposal.signingHash, privateKey),
      });
    await defi.executeProposal({ proposalId });
    expect(await publish()).toBe("THRESHOLD_NOT_REACHED");
    expect(await signRoot(ada, proposal, false)).toBe("answer");
    // The proposal is decided, so a late vote is ignored.
    expect(await signRoot(cid, proposal)).toBe("answer");
    expect(await publish()).toBe("THRESHOLD_NOT_REACHED");
    const [dan, eve] = next.signers as [RootSigner, RootSigner];
    expect(await refusal(tuf.signRoot(toSignRequest(dan, proposal)))).toMatchObject({ fields: ["vote"] });
    expect(await signRoot(dan, proposal, false)).toBe("answer");
    expect(await publish()).toBe("THRESHOLD_NOT_REACHED");
    expect(await signRoot(eve, proposal, false)).toBe("answer");
    expect(await publish()).toBe("answer");
    const root = await domain.read("metadata/2.root.json");
    expect(root.signatures).toHaveLength(4);
    expect(root.signed.roles.root).toMatchObject({ threshold: 2, keyids: { length: 2 } });
    expect((await domain.findProposal(proposalId)).proposalStatus).toBe("PUBLISHED");
    // The keys of the other roles are the same, so their metadata are too.
    for (const path of ["metadata/1.root.json", "metadata/timestamp.json"])
      expect(await domain.read(path)).toMatchObject({ signed: { version: 1 } });
    // Now the new signers decide.
    expect(addressesOf((await proposeRoot(domain)).signers)).toEqual(addressesOf(next.signers));
  });

  it("is published once, even if callers race for one version", async () => {
    const domain = await openPublished();
    const proposals: string[] = [];
    for (const days of [40, 50]) {
      const expiresAt = timestampFromDate(new Date(Date.now() + days * day));
      const proposal = await proposeRoot(domain, { expiresAt });
      for (const signer of domain.signers.slice(1)) await domain.sign(signer, proposal);
      await domain.defi.executeProposal({ proposalId: proposal.proposalId });
      proposals.push(proposal.proposalId);
    }
    const calls = [...proposals, ...proposals].map((proposalId) =>
      domain.tuf.publishRoot({ repository, proposalId }),
    );
    const { answered, refusals } = await outcomesOf(calls);
    expect([answered, ...refusals.map(({ reason }) => reason)]).toEqual([
      1,
      ...Array(3).fill("ROOT_OUTDATED"),
    ]);
    const states = (await Promise.all(proposals.map(domain.findProposal))).map((one) => one.proposalStatus);
    expect(states.sort()).toEqual(["OUTDATED", "PUBLISHED"]);
    expect(await domain.has("metadata/3.root.json")).toBe(false);
  });

  it("with a new role key comes with metadata signed by it, and by rotation in kms or newKeys", async () => {
    const domain = await openPublished();
    await domain.upload("esp32/draft.bin", "not to be published yet");
    const before = present((await domain.tuf.getRepository({ repository })).repository);
    const keyOf = (role: string, { roles } = before) => present(roles.find((one) => one.role === role)).keyId;
    await domain.kms.rotateKey({ keyId: keyOf("snapshot") });
    const proposal = await proposeRoot(domain, { newKeys: ["targets"] });
    const after = await publishRoot(domain, proposal, domain.signers.slice(0, 2));
    const isSame = ["targets", "snapshot", "timestamp"].map((role) => keyOf(role, after) === keyOf(role));
    expect(isSame).toEqual([false, false, true]);
    const { roles } = (await domain.read("metadata/2.root.json")).signed;
    for (const [role, name] of [
      ["targets", "2.targets"],
      ["snapshot", "2.snapshot"],
      ["timestamp", "timestamp"],
    ] as const) {
      const { signatures, signed } = await domain.read(`metadata/${name}.json`);
      expect(signed.version).toBe(2);
      expect(signatures.map(({ keyid }) => keyid)).toEqual(roles[role]?.keyids);
    }
    expect((await domain.read("metadata/2.targets.json")).signed.targets).toEqual({});
  });

  it("is not published if a key that it needs is disabled, and nothing of it is visible", async () => {
    const domain = await openPublished();
    const proposal = await proposeRoot(domain, { newKeys: ["timestamp"] });
    const { keys } = await domain.kms.listKeys({});
    const { keyId } = present(keys.findLast(({ alias }) => alias === "TUF firmware timestamp"));
    await domain.kms.disableKey({ keyId });
    const publishing = publishRoot(domain, proposal, domain.signers.slice(0, 2));
    expect(await outcomeOf(publishing)).toBe("KEY_STATE_INVALID");
    expect(await domain.has("metadata/2.root.json")).toBe(false);
    await domain.kms.enableKey({ keyId });
    await domain.tuf.publishRoot({ repository, proposalId: proposal.proposalId });
    expect((await domain.read("metadata/timestamp.json")).signed.version).toBe(2);
  });

  it("must fit into a proposal, and belong to signers who keep their own keys", async () => {
    const { tuf, defi, kms } = await open();
    const { walletId: tooMany } = await createSigners({ defi }, 20, 2);
    expect(await outcomeOf(tuf.createRepository({ repository, walletId: tooMany }))).toBe("ROOT_TOO_LARGE");
    expect((await kms.listKeys({})).keys).toEqual([]);
    const { walletId } = await createSigners({ defi }, 2, 2);
    await tuf.createRepository({ repository, walletId });
    const { walletId: fitting } = await createSigners({ defi }, 19, 2);
    const { walletId: serverHeld } = await defi.createMultisig({ signerCount: 2, threshold: 2 });
    const outcomes = [];
    for (const next of [tooMany, fitting, serverHeld])
      outcomes.push(await outcomeOf(proposeRoot({ tuf }, { walletId: next })));
    expect(outcomes).toEqual(["ROOT_TOO_LARGE", "answer", "WALLET_UNSUITABLE"]);
  });

  it("is returned to a retry of its proposal, even after it expired", async () => {
    const clock = { now: new Date() };
    const { tuf } = await openPublished(clock);
    const expiresAt = timestampFromDate(new Date(clock.now.getTime() + day / 24));
    const retried = freshOrder();
    const propose = () => tuf.proposeRoot({ repository, expiresAt }, retried);
    const { proposal } = await propose();
    clock.now = new Date(clock.now.getTime() + day / 12);
    expect((await propose()).proposal).toEqual(proposal);
    expect(await refusal(tuf.proposeRoot({ repository, expiresAt }))).toMatchObject({
      fields: ["expiresAt"],
    });
  });

  it("cannot be signed or published after it expired", async () => {
    const clock = { now: new Date() };
    const domain = await openPublished(clock);
    const expiresAt = timestampFromDate(new Date(clock.now.getTime() + day));
    const [one, two] = [await proposeRoot(domain, { expiresAt }), await proposeRoot(domain, { expiresAt })];
    const { proposalId } = one;
    for (const signer of domain.signers.slice(1)) await domain.sign(signer, one);
    await domain.defi.executeProposal({ proposalId });
    clock.now = new Date(clock.now.getTime() + 2 * day);
    expect(await outcomeOf(domain.tuf.publishRoot({ repository, proposalId }))).toBe("PROPOSAL_EXPIRED");
    expect(await domain.sign(present(domain.signers[0]), two)).toBe("PROPOSAL_EXPIRED");
  });
});
