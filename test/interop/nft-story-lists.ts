/** The chapter of a token story in which tokens are listed. */
import { describe, expect, it } from "vitest";
import type { ListedToken } from "#gen/nft/nft_service_pb.ts";
import { refusal } from "../support/refusal.ts";
import { type Stage, tokenNames } from "./nft-story.ts";

export function tellOfLists({ service, alice, bob, past, token }: Stage): void {
  const idsOf = (tokens: readonly ListedToken[]): string[] => tokens.map(({ tokenId }) => tokenId);

  describe("ListTokens", () => {
    it("lists all tokens in the order of their minting, with their owners of today", async () => {
      const before = past().tokens.length;
      const list = await service.listTokens({});
      expect(list).toMatchObject({
        status: "success",
        nextPageToken: "",
        totalSize: before + tokenNames.length,
      });
      expect(list.tokens.slice(0, before)).toEqual(past().tokens);
      expect(idsOf(list.tokens.slice(before))).toEqual(tokenNames.map((name) => token(name).tokenId));
      expect(list.tokens[before]).toEqual({
        $typeName: "nft.ListedToken",
        tokenId: token("Dawn").tokenId,
        name: "Dawn",
        currentOwner: alice,
      });
    });

    it("lists the tokens of one owner in pages, whatever the case of his address", async () => {
      const { tokenId, currentOwner } = await service.getToken({ tokenId: token("Dusk").tokenId });
      const first = token(currentOwner === alice ? "Dawn" : "Ω").tokenId;
      const owner = `0x${currentOwner.slice(2).toUpperCase()}`;
      const page = await service.listTokens({ owner, pageSize: 1 });
      const rest = await service.listTokens({ owner, pageSize: 1, pageToken: page.nextPageToken });
      expect([idsOf(page.tokens), idsOf(rest.tokens)]).toEqual([[first], [tokenId]]);
      expect([page.totalSize, rest.totalSize, rest.nextPageToken]).toEqual([2, 2, ""]);
    });

    it("lists nothing of an owner who has given his token away", async () => {
      const { owner } = token("Dawn");
      expect(await service.listTokens({ owner })).toMatchObject({
        tokens: [],
        nextPageToken: "",
        totalSize: 0,
      });
    });

    it("refuses the page token of another list: of all tokens for that of an owner, of a history for that of all", async () => {
      const { tokenId } = token("Dawn");
      const { nextPageToken: ofAll } = await service.listTokens({ pageSize: 1 });
      const { nextPageToken: ofHistory } = await service.getHistory({ tokenId, pageSize: 1 });
      const wrongPages = [
        service.listTokens({ owner: bob, pageToken: ofAll }),
        service.listTokens({ pageToken: ofHistory }),
      ];
      const fieldInvalid = { code: "InvalidArgument", reason: "FIELD_INVALID" };
      expect(await Promise.all(wrongPages.map(refusal))).toEqual(Array(2).fill(fieldInvalid));
    });
  });
}
