import { randomUUID } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type CreateProposalRequest, CreateProposalResponseSchema } from "#gen/defi/defi_service_pb.ts";
import { refuse } from "../../errors.ts";
import type { CallerInput } from "../../identity/principal.ts";
import { messageCodec } from "../../records/idempotency.ts";
import { readTime } from "../fields.ts";
import type { DefiDeps } from "./create-multisig.ts";
import { packProposal } from "./proposal.ts";
import type { Proposal } from "./store.ts";
import { proposalQuota } from "./tables.ts";

/**
 * Creates a proposal for a wallet's signers.
 *
 * @throws WALLET_NOT_FOUND, RECORD_DAMAGED, IDEMPOTENCY_KEY_REUSED
 */
export async function createProposal(
  { store, governance, now }: DefiDeps,
  { walletId, data, title, expiresAt: end }: CreateProposalRequest,
  { principal, idempotentCall }: CallerInput,
): Promise<MessageInitShape<typeof CreateProposalResponseSchema>> {
  const expiresAt = end && readTime("expiresAt", end);
  // Wallets never change, so reading this one outside the transaction is safe.
  const wallet = await governance.wallets.findIntact({ walletId }, { principal });
  if (wallet === undefined)
    throw refuse("WALLET_NOT_FOUND", `wallet ${walletId} does not exist`, { walletId });
  return store.runIdempotent(idempotentCall, messageCodec(CreateProposalResponseSchema), async (write) => {
    await store.requireRoom(proposalQuota, wallet.owner);
    return write(async (transaction) => {
      const proposal: Proposal = {
        walletId,
        data,
        title,
        expiresAt,
        owner: wallet.owner,
        proposalId: `proposal-${randomUUID()}`,
        threshold: wallet.threshold,
        status: "PENDING",
        signedBy: [],
        createdAt: now(),
        executedAt: undefined,
      };
      await governance.proposals.insert(transaction, proposal);
      return { proposal: packProposal(proposal) };
    });
  });
}
