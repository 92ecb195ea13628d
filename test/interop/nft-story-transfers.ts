/** The chapters of a token story in which tokens go from one owner to another. */
import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { refusal } from "../support/refusal.ts";
import { isSince, type Stage } from "./nft-story.ts";

const ownerMismatch = { code: "FailedPrecondition", reason: "OWNER_MISMATCH" };

/**
 * Tokens go like this: Dawn from its creator to Alice, to Bob and back to Alice; Ω to Bob; Dusk to one of both,
 * who race for it; Noon stays.
 */
export function tellOfTransferring({ service, alice, bob, token }: Stage): void {
  describe("Transfer", () => {
    it("gives a token to another owner", async () => {
      const { tokenId, owner } = token("Dawn");
      const before = Date.now();
      const answer = await service.transfer({ tokenId, newOwner: alice });
      expect(answer).toEqual({
        $typeName: "nft.TransferResponse",
        status: "success",
        transfer: {
          $typeName: "nft.TokenTransfer",
          fromAddress: owner,
          toAddress: alice,
          timestamp: expect.anything(),
        },
        currentOwner: alice,
      });
      expect(answer.transfer?.timestamp).toSatisfy(isSince(before));
    });

    it("takes addresses in upper case for those in lower case", async () => {
      const { tokenId } = token("Dawn");
      const answer = await service.transfer({
        tokenId,
        newOwner: toUpperCase(bob),
        fromOwner: toUpperCase(alice),
      });
      expect(answer).toMatchObject({
        transfer: { fromAddress: alice, toAddress: bob },
        currentOwner: bob,
      });
    });

    it("is refused if fromOwner is not the owner, and the token stays", async () => {
      const { tokenId } = token("Dawn");
      const call = service.transfer({ tokenId, newOwner: alice, fromOwner: alice });
      expect(await refusal(call)).toEqual(ownerMismatch);
      expect(await service.getToken({ tokenId })).toMatchObject({ currentOwner: bob });
    });

    it("with an Idempotency-Key happens once, and answers a retry as the first call, whoever owns the token by then", async () => {
      const { tokenId } = token("Ω");
      const once = { headers: { "Idempotency-Key": randomUUID() } };
      const first = await service.transfer({ tokenId, newOwner: alice }, once);
      await service.transfer({ tokenId, newOwner: bob });
      expect(await service.transfer({ tokenId, newOwner: alice }, once)).toEqual(first);
      expect(await service.getToken({ tokenId })).toMatchObject({ currentOwner: bob });
    });

    it("lets one of two callers win who race with fromOwner", async () => {
      const { tokenId, owner } = token("Dusk");
      const race = (newOwner: string) => service.transfer({ tokenId, newOwner, fromOwner: owner });
      const calls = [race(alice), race(bob)];
      const settled = await Promise.allSettled(calls);
      const winners = settled.filter((one) => one.status === "fulfilled").map(({ value }) => value);
      const losers = settled.filter((one) => one.status === "rejected").map(({ reason }) => reason);
      expect([winners.length, losers.length]).toEqual([1, 1]);
      expect(await refusal(Promise.reject(losers[0]))).toEqual(ownerMismatch);
      const { currentOwner } = await service.getToken({ tokenId });
      expect(winners.map((winner) => winner.currentOwner)).toEqual([currentOwner]);
    });
  });
}

/** In hexadecimal digits, and not in what is before them. */
function toUpperCase(address: string): string {
  return `0x${address.slice(2).toUpperCase()}`;
}

export function tellOfHistory({ service, alice, bob, token }: Stage): void {
  describe("GetHistory", () => {
    it("is empty before the first transfer", async () => {
      expect(await service.getHistory({ tokenId: token("Noon").tokenId })).toEqual({
        $typeName: "nft.GetHistoryResponse",
        status: "success",
        history: [],
        nextPageToken: "",
        totalSize: 0,
      });
    });

    it("tells of each transfer as Transfer answered, oldest first, page by page", async () => {
      const { tokenId, owner } = token("Dawn");
      const { transfer } = await service.transfer({ tokenId, newOwner: alice, fromOwner: bob });
      const page = await service.getHistory({ tokenId, pageSize: 2 });
      const rest = await service.getHistory({ tokenId, pageSize: 2, pageToken: page.nextPageToken });
      expect(page.history).toMatchObject([
        { fromAddress: owner, toAddress: alice },
        { fromAddress: alice, toAddress: bob },
      ]);
      expect(rest.history).toEqual([transfer]);
      expect([page.totalSize, rest.totalSize, rest.nextPageToken]).toEqual([3, 3, ""]);
    });

    it("tells nothing of transfers that were refused or repeated", async () => {
      const { history: ofDusk } = await service.getHistory({ tokenId: token("Dusk").tokenId });
      const { history: ofOmega } = await service.getHistory({ tokenId: token("Ω").tokenId });
      expect(ofDusk.map(({ fromAddress }) => fromAddress)).toEqual([token("Dusk").owner]);
      expect(ofOmega.map(({ toAddress }) => toAddress)).toEqual([alice, bob]);
    });
  });
}
