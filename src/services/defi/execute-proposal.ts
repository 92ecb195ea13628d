import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { ExecuteProposalResponseSchema } from "#gen/defi/defi_service_pb.ts";
import { RecordDamaged } from "../../database/store-error.ts";
import { refuse } from "../../errors.ts";
import { messageCodec, type OnceCall } from "../../records/idempotency.ts";
import type { Viewer } from "../../records/ownership.ts";
import type { DefiParts } from "./create-multisig.ts";
import { packProposal, requirePending, signingHashOf } from "./proposal.ts";
import { isSignedBy } from "./sign-proposal.ts";
import type { Proposal } from "./store.ts";

/** What is to be executed. */
export interface ExecuteProposalOrder {
  readonly proposalId: string;
  readonly viewer: Viewer;
  readonly once: OnceCall | undefined;
}

/**
 * Executes a proposal that enough signers signed; of callers that race, one does.
 *
 * @throws PROPOSAL_NOT_FOUND, PROPOSAL_EXECUTED, PROPOSAL_EXPIRED, THRESHOLD_NOT_REACHED, RECORD_DAMAGED,
 *   IDEMPOTENCY_KEY_REUSED
 */
export function executeProposal(
  parts: DefiParts,
  { proposalId, viewer, once }: ExecuteProposalOrder,
): Promise<MessageInitShape<typeof ExecuteProposalResponseSchema>> {
  const { store, governance, now } = parts;
  return store.once(once, messageCodec(ExecuteProposalResponseSchema), async (write) => {
    const found = await governance.findProposal(proposalId, viewer);
    const proposal = requirePending(found, proposalId, now());
    requireThreshold(proposal);
    await verifySignatures(parts, proposal);
    return write(async (transaction) => {
      // Signatures only ever come; those that were verified are still there.
      const current = requirePending(
        await governance.findForChange(transaction, proposalId),
        proposalId,
        now(),
      );
      const executedAt = now();
      const executed = await governance.markExecuted(transaction, current, executedAt);
      return { proposal: packProposal(executed), executed: true, executedAt: timestampFromDate(executedAt) };
    });
  });
}

function requireThreshold({ proposalId, threshold, signedBy }: Proposal): void {
  if (signedBy.length >= threshold) return;
  throw refuse(
    "THRESHOLD_NOT_REACHED",
    `proposal ${proposalId} has ${signedBy.length} of the ${threshold} signatures that it takes`,
    { proposalId, signatureCount: String(signedBy.length), threshold: String(threshold) },
  );
}

/** Verifies every signature that is stored, whoever put it there. @throws RecordDamaged */
async function verifySignatures({ provider, governance }: DefiParts, proposal: Proposal): Promise<void> {
  const signatures = await governance.readSignatures(proposal.proposalId);
  const message = signingHashOf(proposal);
  const damaged = new RecordDamaged(`signatures of proposal ${proposal.proposalId}`);
  if (new Set(proposal.signedBy).size !== proposal.signedBy.length) throw damaged;
  const verdicts = proposal.signedBy.map(async (address) => {
    const signer = await governance.findSigner(proposal.walletId, address);
    const signature = signatures.get(address);
    return (
      signer !== undefined && signature !== undefined && isSignedBy(provider, signer, message, signature)
    );
  });
  if (!(await Promise.all(verdicts)).every(Boolean)) throw damaged;
}
