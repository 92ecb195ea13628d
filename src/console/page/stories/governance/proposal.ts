/** The bytes that signers sign of a proposal, as DefiService in the proto says. */
import { sha256 } from "../../algorithms.ts";
import { toBase64 } from "../../base64.ts";
import { toUtf8 } from "../../values.ts";

/** The content of a proposal. */
export interface ProposalFacts {
  readonly proposalId: string;
  readonly walletId: string;
  readonly title: string;
  readonly data: Uint8Array;
  readonly threshold: number;
  readonly createdAt: Date;
  readonly expiresAt: Date;
}

/** The proposal as canonical JSON (RFC 8785). */
export function writeSigningText({ createdAt, data, expiresAt, ...facts }: ProposalFacts): string {
  // JSON.stringify writes texts and numbers as RFC 8785 does (section 3.2.2); the members are put into their order here.
  return JSON.stringify({
    createdAt: createdAt.toISOString(),
    data: toBase64(data),
    expiresAt: expiresAt.toISOString(),
    proposalId: facts.proposalId,
    purpose: "defi proposal",
    threshold: facts.threshold,
    title: facts.title,
    walletId: facts.walletId,
  });
}

/** SHA-256 over the canonical JSON: 32 bytes. */
export function hashProposal(facts: ProposalFacts): Promise<Uint8Array> {
  return sha256(toUtf8(writeSigningText(facts)));
}
