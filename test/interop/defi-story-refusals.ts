/** The chapter of a story in which calls are refused. */
import { describe, expect, it } from "vitest";
import type { DefiClient } from "../services/proposals.ts";
import { refusal } from "../support/refusal.ts";
import { invalid } from "../support/refusals.ts";
import type { Stage } from "./defi-story.ts";
import { data } from "./defi-story-proposing.ts";

/** Nothing has this id; it needs care in a path, in a query and in JSON. */
export const unknownId = 'no such/wallet? "é" & 100%+😀';

const { code, reason } = invalid();
const fieldInvalid = { code, reason };
const keyInvalid = { code, reason: "KEY_INVALID" };
const noWallet = { code: "NotFound", reason: "WALLET_NOT_FOUND" };
const noProposal = { code: "NotFound", reason: "PROPOSAL_NOT_FOUND" };

type MakeCall = (defi: DefiClient) => Promise<unknown>;

const wrongCalls: readonly (readonly [title: string, call: MakeCall, refusal: object])[] = [
  [
    "a wallet that more must sign for than it has signers",
    (defi) => defi.createMultisig({ signerCount: 3, threshold: 4 }),
    fieldInvalid,
  ],
  [
    "a wallet of a key that is too short",
    (defi) => defi.createMultisig({ signerPublicKeys: [new Uint8Array(1951)], threshold: 1 }),
    keyInvalid,
  ],
  [
    "a proposal to a wallet that is not there",
    (defi) => defi.createProposal({ walletId: unknownId, data }),
    noWallet,
  ],
  [
    "to execute a proposal that is not there",
    (defi) => defi.executeProposal({ proposalId: unknownId }),
    noProposal,
  ],
  [
    "to list proposals of a status that there is not",
    (defi) => defi.listProposals({ proposalStatus: "OPEN" }),
    fieldInvalid,
  ],
];

export function tellOfRefusals({ defi }: Stage): void {
  describe("refused is", () => {
    it.each(wrongCalls)("%s", async (_title, call, expected) => {
      expect(await refusal(call(defi))).toEqual(expected);
    });
  });
}
