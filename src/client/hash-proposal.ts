/** Computes the bytes that the signers of a proposal sign (proto/defi, DefiService). */
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import type { Proposal } from "../../gen/defi/defi_service_pb.ts";
import { toBase64 } from "./base64.ts";

/** The fields that the signature covers. */
export type SignedProposal = Pick<
  Proposal,
  "proposalId" | "walletId" | "title" | "data" | "threshold" | "createdAt" | "expiresAt"
>;

/** Serializes a proposal as canonical JSON (RFC 8785). */
export function writeSigningText(proposal: SignedProposal): string {
  const { createdAt, data, expiresAt, proposalId, threshold, title, walletId } = proposal;
  // JSON.stringify formats strings and numbers as RFC 8785, section 3.2.2, requires; the members are sorted here.
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

/** Computes SHA-256 of the canonical JSON: 32 bytes. */
export async function hashProposal(proposal: SignedProposal): Promise<Uint8Array> {
  const { sha256 } = await import("@noble/hashes/sha2.js");
  return sha256(new TextEncoder().encode(writeSigningText(proposal)));
}

function writeTime(timestamp: Timestamp | undefined): string {
  return timestamp === undefined ? "" : timestampDate(timestamp).toISOString();
}
