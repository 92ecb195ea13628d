/** The chapter of a story that makes proposals. */
import { hash } from "node:crypto";
import { timestampDate, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import type { Proposal } from "#gen/defi/defi_service_pb.ts";
import { present } from "../services/answers.ts";
import { anId } from "../services/expected.ts";
import { bytesOf } from "../support/bytes.ts";
import { refusal } from "../support/refusal.ts";
import { reused } from "../support/refusals.ts";
import type { Stage } from "./defi-story.ts";
import { toCanonicalJson } from "./outside.ts";

/** What a proposal is about. */
export const data = bytesOf("pay 5 to bob");
const everyByte = Uint8Array.from({ length: 256 }, (_, i) => i);
const farOff = timestampFromMs(Date.UTC(2199, 11, 31, 23, 59, 59, 120));

export function tellOfProposing({ defi, once, wallets, proposals }: Stage): void {
  describe("CreateProposal", () => {
    it.each([
      ["plain", "council", { data }],
      ["dated", "council", { data: everyByte, title: 'Zürich "7" \\ 😀', expiresAt: farOff }],
      ["shared", "owners", { data, title: "7" }],
    ])("makes a %s proposal, whose signing hash comes out the same outside", async (name, to, content) => {
      const { walletId, threshold } = wallets.get(to);
      const before = Date.now();
      const proposal = present((await defi.createProposal({ walletId, ...content })).proposal);
      const { createdAt } = proposal;
      expect(proposal).toEqual({
        $typeName: "defi.Proposal",
        proposalId: anId("proposal"),
        walletId,
        signatureCount: 0,
        threshold,
        proposalStatus: "PENDING",
        createdAt,
        title: "",
        signingHash: hashOutside(proposal),
        signedBy: [],
        ...content,
      });
      expect(timestampDate(present(createdAt)).getTime()).toSatisfy(
        (createdAtMs: number) => createdAtMs >= before && createdAtMs <= Date.now(),
      );
      proposals.keep(name, proposal);
    });

    it("with an Idempotency-Key proposes once, and is refused if another request had the key", async () => {
      const { walletId } = wallets.get("one");
      const first = await defi.createProposal({ walletId, data }, once("proposal"));
      proposals.keep("raced", present(first.proposal));
      expect(await defi.createProposal({ walletId, data }, once("proposal"))).toEqual(first);
      const other = defi.createProposal({ walletId, data: everyByte }, once("proposal"));
      expect(await refusal(other)).toEqual(reused);
    });
  });
}

/** What signers sign, byte for byte as the proto says. */
function hashOutside({ proposalId, walletId, data, title, threshold, createdAt, expiresAt }: Proposal) {
  const canonical = toCanonicalJson({
    createdAt: timestampDate(present(createdAt)).toISOString(),
    data: Buffer.from(data).toString("base64"),
    expiresAt: expiresAt ? timestampDate(expiresAt).toISOString() : "",
    proposalId,
    purpose: "defi proposal",
    threshold,
    title,
    walletId,
  });
  return new Uint8Array(hash("sha256", canonical, "buffer"));
}
