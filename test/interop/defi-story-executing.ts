/** The chapter of a story that executes proposals. */
import { timestampDate, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it, vi } from "vitest";
import type { ExecuteProposalResponse } from "#gen/defi/defi_service_pb.ts";
import { present } from "../services/answers.ts";
import { outcomesOf, refusal } from "../support/refusal.ts";
import { reused } from "../support/refusals.ts";
import type { Stage } from "./defi-story.ts";
import { data } from "./defi-story-proposing.ts";

const executedAlready = { code: "FailedPrecondition", reason: "PROPOSAL_EXECUTED" };
const expired = { code: "FailedPrecondition", reason: "PROPOSAL_EXPIRED" };

export function tellOfExecuting({ defi, past, once, wallets, proposals }: Stage): void {
  describe("ExecuteProposal", () => {
    /** Expects that a proposal of the story executed; keeps it as it is then. */
    const expectExecuted = (name: string, answer: ExecuteProposalResponse, askedAtMs: number): void => {
      const { executedAt } = answer;
      const proposal = { ...proposals.get(name), proposalStatus: "EXECUTED", executedAt };
      expect(answer).toEqual({
        $typeName: "defi.ExecuteProposalResponse",
        status: "success",
        proposal,
        executed: true,
        executedAt,
      });
      expect(timestampDate(present(executedAt)).getTime()).toSatisfy(
        (executedAtMs: number) => executedAtMs >= askedAtMs && executedAtMs <= Date.now(),
      );
      proposals.keep(name, present(answer.proposal));
    };

    it("executes what more than enough signers signed", async () => {
      const askedAtMs = Date.now();
      const { proposalId } = proposals.get("plain");
      expectExecuted("plain", await defi.executeProposal({ proposalId }), askedAtMs);
    });

    it("does so no second time, and SignProposal takes no signature more", async () => {
      const { proposalId, signedBy } = proposals.get("plain");
      expect(await refusal(defi.executeProposal({ proposalId }))).toEqual(executedAlready);
      const signer = present(signedBy[0]);
      expect(await refusal(defi.signProposal({ proposalId, signer }))).toEqual(executedAlready);
    });

    it("executes for one of two callers of one moment", async () => {
      const { proposalId } = proposals.get("raced");
      const calls = [defi.executeProposal({ proposalId }), defi.executeProposal({ proposalId })];
      expect(await outcomesOf(calls)).toEqual({ answered: 1, refusals: [executedAlready] });
      const { walletId } = wallets.get("one");
      const { proposals: listed } = await defi.listProposals({ walletId, proposalStatus: "EXECUTED" });
      expect(listed.map((one) => one.proposalId)).toEqual([proposalId]);
      proposals.keep("raced", present(listed[0]));
    });

    it("with an Idempotency-Key answers a retry as the first call, and is refused for another proposal", async () => {
      const askedAtMs = Date.now();
      const { proposalId } = proposals.get("shared");
      const first = await defi.executeProposal({ proposalId }, once("execution"));
      expectExecuted("shared", first, askedAtMs);
      expect(await defi.executeProposal({ proposalId }, once("execution"))).toEqual(first);
      const other = { proposalId: proposals.get("dated").proposalId };
      expect(await refusal(defi.executeProposal(other, once("execution")))).toEqual(reused);
    });

    it("does not execute what expired, and SignProposal does not sign it", async () => {
      const { walletId, signers } = wallets.get("one");
      // It is to expire soon, but the call has to arrive before that.
      let lifeMs = 150;
      const { proposal } = await vi.waitFor(
        () => {
          lifeMs *= 2;
          return defi.createProposal({ walletId, data, expiresAt: timestampFromMs(Date.now() + lifeMs) });
        },
        { timeout: 120_000 },
      );
      const { proposalId } = present(proposal);
      proposals.keep("late", present(proposal));
      const expectExpired = async () =>
        expect(await refusal(defi.executeProposal({ proposalId }))).toEqual(expired);
      await vi.waitFor(expectExpired, { timeout: 100_000 });
      const signer = present(signers[0]);
      expect(await refusal(defi.signProposal({ proposalId, signer }))).toEqual(expired);
      const { totalSize } = await defi.listProposals({ proposalStatus: "EXECUTED", pageSize: 1 });
      expect(totalSize).toBe(past().executed + 3);
    });
  });
}
