/** The chapter of a story that signs proposals. */
import { describe, expect, it } from "vitest";
import type { Proposal } from "#gen/defi/defi_service_pb.ts";
import { present } from "../services/answers.ts";
import { readProposal } from "../services/proposals.ts";
import { flipBit } from "../support/bytes.ts";
import { outcomesOf, refusal } from "../support/refusal.ts";
import { reused } from "../support/refusals.ts";
import type { SignAsOwner, Stage } from "./defi-story.ts";

const tooFew = { code: "FailedPrecondition", reason: "THRESHOLD_NOT_REACHED" };
const stranger = { code: "PermissionDenied", reason: "SIGNER_UNKNOWN" };
const counted = { code: "AlreadyExists", reason: "ALREADY_SIGNED" };
const missing = { code: "FailedPrecondition", reason: "SIGNATURE_MISSING" };
const wrong = { code: "InvalidArgument", reason: "SIGNATURE_INVALID" };

export function tellOfSigning({ defi, once, wallets, proposals, owners }: Stage): void {
  /** A proposal as it should be once these signed it too. */
  const signedBy = (proposal: Proposal, ...signers: readonly string[]): Proposal => {
    const all = [...proposal.signedBy, ...signers];
    return { ...proposal, signedBy: all, signatureCount: all.length };
  };
  const signerOf = (name: string, i: number): string => present(wallets.get(name).signers[i]);

  describe("SignProposal", () => {
    it("signs for a signer whose key the service keeps, and counts one", async () => {
      const before = proposals.get("plain");
      const signer = signerOf("council", 0);
      const { proposal } = await defi.signProposal({ proposalId: before.proposalId, signer });
      expect(proposal).toEqual(signedBy(before, signer));
      proposals.keep("plain", present(proposal));
    });

    it("counts a signer once, and no stranger; the proposal stays as it was", async () => {
      const before = proposals.get("plain");
      const { proposalId } = before;
      const sign = (signer: string) => refusal(defi.signProposal({ proposalId, signer }));
      expect(await sign(signerOf("council", 0))).toEqual(counted);
      expect(await sign(signerOf("one", 0))).toEqual(stranger);
      expect(await readProposal(defi, proposalId)).toEqual(before);
    });

    it("leaves a proposal that does not execute below its threshold, and stays PENDING", async () => {
      const { proposalId } = proposals.get("plain");
      expect(await refusal(defi.executeProposal({ proposalId }))).toEqual(tooFew);
      expect(await readProposal(defi, proposalId)).toEqual(proposals.get("plain"));
    });

    it("counts both signers who sign at one moment", async () => {
      const before = proposals.get("plain");
      const { proposalId } = before;
      const signers = [signerOf("council", 1), signerOf("council", 2)];
      await Promise.all(signers.map((signer) => defi.signProposal({ proposalId, signer })));
      const after = await readProposal(defi, proposalId);
      expect(after.signedBy.slice(1).toSorted()).toEqual(signers.toSorted());
      expect(after).toEqual(signedBy(before, ...after.signedBy.slice(1)));
      proposals.keep("plain", after);
    });

    it("counts one of two signatures of one signer at one moment", async () => {
      const before = proposals.get("dated");
      const signer = signerOf("council", 1);
      const sign = () => defi.signProposal({ proposalId: before.proposalId, signer });
      expect(await outcomesOf([sign(), sign()])).toEqual({ answered: 1, refusals: [counted] });
      proposals.keep("dated", signedBy(before, signer));
    });

    it("with an Idempotency-Key counts once, and is refused if another request had the key", async () => {
      const before = proposals.get("raced");
      const { proposalId } = before;
      const order = { proposalId, signer: signerOf("one", 0) };
      const first = await defi.signProposal(order, once("signature"));
      expect(first.proposal).toEqual(signedBy(before, order.signer));
      expect(await defi.signProposal(order, once("signature"))).toEqual(first);
      const other = { ...order, signer: signerOf("council", 0) };
      expect(await refusal(defi.signProposal(other, once("signature")))).toEqual(reused);
      proposals.keep("raced", present(first.proposal));
    });
  });

  describe("SignProposal for a signer who keeps its own key", () => {
    const signAs = (signer: string): Uint8Array => {
      const sign: SignAsOwner = present(owners.get(signer));
      return sign(proposals.get("shared").signingHash);
    };

    it("takes no signature that is missing, changed or another's", async () => {
      const { proposalId } = proposals.get("shared");
      const [signer, other] = [signerOf("owners", 0), signerOf("owners", 1)];
      const sign = (signature: Uint8Array) => refusal(defi.signProposal({ proposalId, signer, signature }));
      expect(await sign(new Uint8Array())).toEqual(missing);
      expect(await sign(flipBit(signAs(signer), 20))).toEqual(wrong);
      expect(await sign(signAs(other))).toEqual(wrong);
    });

    it.each([
      ["node:crypto", 0, (address: string) => address],
      [
        "@noble/post-quantum, whose address is in upper-case digits,",
        1,
        (address: string) => `0x${address.slice(2).toUpperCase()}`,
      ],
    ])("takes a signature that was made with %s", async (_title, i, spell) => {
      const before = proposals.get("shared");
      const { proposalId } = before;
      const signer = signerOf("owners", i);
      const order = { proposalId, signer: spell(signer), signature: signAs(signer) };
      const { proposal } = await defi.signProposal(order);
      expect(proposal).toEqual(signedBy(before, signer));
      proposals.keep("shared", present(proposal));
    });
  });
}
