/** The chapter of a story that lists wallets and proposals. */
import { describe, expect, it } from "vitest";
import { refusal } from "../support/refusal.ts";
import { invalid } from "../support/refusals.ts";
import type { Stage } from "./defi-story.ts";
import { unknownId } from "./defi-story-refusals.ts";

export function tellOfLists({ defi, past, wallets, proposals }: Stage): void {
  describe("ListWallets", () => {
    it("lists wallets in the order of their creation, page by page", async () => {
      const before = past().wallets;
      const [council, owners, one] = wallets.all().map(({ walletId, signers, threshold }) => ({
        $typeName: "defi.MultisigWallet",
        ...{ walletId, signers, threshold },
      }));
      const pageSize = before + 2;
      const page = await defi.listWallets({ pageSize });
      const { nextPageToken } = page;
      const list = { $typeName: "defi.ListWalletsResponse", status: "success", totalSize: before + 3 };
      const earlier = page.wallets.slice(0, before);
      expect(page).toEqual({ ...list, wallets: [...earlier, council, owners], nextPageToken });
      const rest = await defi.listWallets({ pageSize, pageToken: nextPageToken });
      expect(rest).toEqual({ ...list, wallets: [one], nextPageToken: "" });
    });
  });

  describe("ListProposals", () => {
    const list = { $typeName: "defi.ListProposalsResponse", status: "success" };
    const council = () => wallets.get("council").walletId;
    let nextPageToken: string;

    it("lists the proposals of a wallet in the order of their creation, page by page", async () => {
      const filter = { walletId: council(), pageSize: 1 };
      const page = await defi.listProposals(filter);
      ({ nextPageToken } = page);
      expect(page).toEqual({
        ...list,
        proposals: [proposals.get("plain")],
        nextPageToken,
        totalSize: 2,
      });
      expect(await defi.listProposals({ ...filter, pageToken: nextPageToken })).toEqual({
        ...list,
        proposals: [proposals.get("dated")],
        nextPageToken: "",
        totalSize: 2,
      });
    });

    it("lists those that executed, and those that did not", async () => {
      const read = async (proposalStatus: string, before: number) => {
        const { proposals, totalSize, nextPageToken } = await defi.listProposals({ proposalStatus });
        expect({ totalSize, nextPageToken }).toEqual({ totalSize: proposals.length, nextPageToken: "" });
        expect(new Set(proposals.map((one) => one.proposalStatus))).toEqual(new Set([proposalStatus]));
        return proposals.slice(before);
      };
      const ofStory = (...names: string[]) => names.map((name) => proposals.get(name));
      const { executed, pending } = past();
      expect(await read("EXECUTED", executed)).toEqual(ofStory("plain", "shared", "raced"));
      expect(await read("PENDING", pending)).toEqual(ofStory("dated", "late"));
    });

    it("lists all, those of earlier stories first", async () => {
      const before = past().pending + past().executed;
      const answer = await defi.listProposals({});
      expect(answer.proposals.slice(before)).toEqual(proposals.all());
      expect(answer).toMatchObject({ nextPageToken: "", totalSize: before + proposals.all().length });
    });

    it("lists nothing of a wallet that is not there", async () => {
      const answer = await defi.listProposals({ walletId: unknownId });
      expect(answer).toEqual({ ...list, proposals: [], nextPageToken: "", totalSize: 0 });
    });

    it("refuses the page token of another list", async () => {
      const { code, reason } = invalid();
      const foreign = { walletId: council(), proposalStatus: "PENDING", pageToken: nextPageToken };
      expect(await refusal(defi.listProposals(foreign))).toEqual({ code, reason });
      expect(await refusal(defi.listWallets({ pageToken: nextPageToken }))).toEqual({ code, reason });
    });
  });
}
