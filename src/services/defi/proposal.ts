/** A proposal's signing hash, its state, and its message. */
import { hash } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import canonicalize from "canonicalize";
import type { ProposalSchema } from "#gen/defi/defi_service_pb.ts";
import { refuse } from "../../errors.ts";
import type { FindOptions } from "../../records/record-table.ts";
import type { DefiDeps } from "./create-multisig.ts";
import type { Proposal } from "./store.ts";

/** Computes the 32 bytes that signers sign, as the DefiService comment in the proto specifies. */
export function hashProposal(proposal: Proposal): Uint8Array {
  const { proposalId, walletId, data, title, threshold, createdAt, expiresAt } = proposal;
  const canonical = canonicalize({
    createdAt: createdAt.toISOString(),
    data: Buffer.from(data).toString("base64"),
    expiresAt: expiresAt?.toISOString() ?? "",
    proposalId,
    purpose: "defi proposal",
    threshold,
    title,
    walletId,
  });
  return hash("sha256", canonical ?? "", "buffer");
}

/**
 * Finds a proposal that can still be signed and executed.
 *
 * @throws PROPOSAL_NOT_FOUND, PROPOSAL_EXECUTED, PROPOSAL_EXPIRED, RecordDamagedError
 */
export async function findPending(
  { governance, now }: Pick<DefiDeps, "governance" | "now">,
  proposalId: string,
  options: FindOptions,
): Promise<Proposal> {
  const proposal = await governance.proposals.findIntact({ proposalId }, options);
  if (proposal === undefined)
    throw refuse("PROPOSAL_NOT_FOUND", `proposal ${proposalId} does not exist`, { proposalId });
  const { status, executedAt, expiresAt } = proposal;
  if (status === "EXECUTED") {
    const at = executedAt?.toISOString() ?? "";
    throw refuse("PROPOSAL_EXECUTED", `proposal ${proposalId} was executed at ${at}`, {
      proposalId,
      executedAt: at,
    });
  }
  if (expiresAt !== undefined && expiresAt <= now()) {
    const at = expiresAt.toISOString();
    throw refuse("PROPOSAL_EXPIRED", `proposal ${proposalId} expired at ${at}`, {
      proposalId,
      expiresAt: at,
    });
  }
  return proposal;
}

export function packProposal(proposal: Proposal): MessageInitShape<typeof ProposalSchema> {
  const { proposalId, walletId, data, title, threshold, status, signedBy, createdAt } = proposal;
  return {
    proposalId,
    walletId,
    data,
    title,
    threshold,
    proposalStatus: status,
    signatureCount: signedBy.length,
    signedBy: [...signedBy],
    signingHash: hashProposal(proposal),
    createdAt: timestampFromDate(createdAt),
    ...(proposal.expiresAt && { expiresAt: timestampFromDate(proposal.expiresAt) }),
    ...(proposal.executedAt && { executedAt: timestampFromDate(proposal.executedAt) }),
  };
}
