/** The bytes that signers sign of a proposal, as DefiService in the proto says. */
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import type { Proposal } from "../../gen/defi/defi_service_pb.ts";
import { toBase64 } from "./base64.ts";

/** The fields of a proposal that its signers sign. */
export type SignedProposal = Pick<
  Proposal,
  "proposalId" | "walletId" | "title" | "data" | "threshold" | "createdAt" | "expiresAt"
>;

/** The proposal as canonical JSON (RFC 8785). */
export function writeSigningText(proposal: SignedProposal): string {
  const { createdAt, data, expiresAt, proposalId, threshold, title, walletId } = proposal;
  // JSON.stringify writes texts and numbers as RFC 8785 does (section 3.2.2); the members are put into their order here.
  return JSON.stringify({
    createdAt: writeTime(createdAt),
    data: toBase64(data),
    expiresAt: writeTime(expiresAt),
    proposalId,
    purpose: "defi proposal",
    threshold,
    title,
    walletId,
  });
}

/** SHA-256 over the canonical JSON: 32 bytes. */
export async function hashProposal(proposal: SignedProposal): Promise<Uint8Array> {
  const { sha256 } = await import("@noble/hashes/sha2.js");
  return sha256(new TextEncoder().encode(writeSigningText(proposal)));
}

function writeTime(timestamp: Timestamp | undefined): string {
  return timestamp === undefined ? "" : timestampDate(timestamp).toISOString();
}
