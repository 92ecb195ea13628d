import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type ExecuteProposalRequest, ExecuteProposalResponseSchema } from "#gen/defi/defi_service_pb.ts";
import { RecordDamagedError } from "../../database/store-error.ts";
import { refuse } from "../../errors.ts";
import type { CallerInput } from "../../identity/principal.ts";
import { messageCodec } from "../../records/idempotency.ts";
import { intact } from "../../records/table-declaration.ts";
import type { DefiDeps } from "./create-multisig.ts";
import { findPending, hashProposal, packProposal } from "./proposal.ts";
import { isSignedBy } from "./sign-proposal.ts";
import type { Proposal } from "./store.ts";

/**
 * Executes a proposal with enough signatures. If callers race, only one succeeds.
 *
 * @throws PROPOSAL_NOT_FOUND, PROPOSAL_EXECUTED, PROPOSAL_EXPIRED, THRESHOLD_NOT_REACHED, RECORD_DAMAGED,
 *   IDEMPOTENCY_KEY_REUSED
 */
export function executeProposal(
  deps: DefiDeps,
  { proposalId }: ExecuteProposalRequest,
  { principal, idempotentCall }: CallerInput,
) {
  const { store, governance, now } = deps;
  return store.runIdempotent(idempotentCall, messageCodec(ExecuteProposalResponseSchema), async (write) => {
    const proposal = await findPending(deps, proposalId, { principal });
    requireThreshold(proposal);
    if (!(await areSignaturesValid(deps, proposal)))
      throw new RecordDamagedError(`signature list of proposal ${proposalId}`);
    return write(async (transaction) => {
      // Signatures are never removed, so all verified signatures still exist.
      const current = await findPending(deps, proposalId, transaction);
      const executedAt = now();
      const change = { status: "EXECUTED", executedAt } as const;
      const executed = await governance.proposals.update(transaction, intact(current), change);
      return { proposal: packProposal(executed), executed: true, executedAt: timestampFromDate(executedAt) };
    });
  });
}

function requireThreshold({ proposalId, threshold, signedBy }: Proposal): void {
  if (signedBy.length >= threshold) return;
  throw refuse(
    "THRESHOLD_NOT_REACHED",
    `proposal ${proposalId} has ${signedBy.length} of the ${threshold} required signatures`,
    { proposalId, signatureCount: String(signedBy.length), threshold: String(threshold) },
  );
}

/** Verifies the stored signature of every signer that has signed, including any that the server did not write. */
export async function areSignaturesValid(
  { provider, governance }: Pick<DefiDeps, "provider" | "governance">,
  proposal: Proposal,
): Promise<boolean> {
  const { proposalId, walletId, signedBy } = proposal;
  const signatures = await governance.readSignatures(proposalId);
  const message = hashProposal(proposal);
  const verdicts = signedBy.map(async (address) => {
    const signer = await governance.signers.find({ walletId, address });
    const signature = signatures.get(address);
    return (
      signer?.isIntact === true &&
      signature !== undefined &&
      isSignedBy(provider, signer.record, message, signature)
    );
  });
  return new Set(signedBy).size === signedBy.length && (await Promise.all(verdicts)).every(Boolean);
}
