import { randomUUID } from "node:crypto";
import { type CreateProposalRequest, CreateProposalResponseSchema } from "#gen/defi/defi_service_pb.ts";
import { refuse } from "../../errors.ts";
import type { CallerInput } from "../../identity/principal.ts";
import { messageCodec } from "../../records/idempotency.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import { readTime } from "../fields.ts";
import type { DefiDeps } from "./create-multisig.ts";
import { packProposal } from "./proposal.ts";
import type { MultisigWallet, Proposal } from "./store.ts";
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
) {
  const expiresAt = end && readTime("expiresAt", end);
  // Wallets never change, so reading this one outside the transaction is safe.
  const wallet = await governance.wallets.findIntact({ walletId }, { principal });
  if (wallet === undefined)
    throw refuse("WALLET_NOT_FOUND", `wallet ${walletId} does not exist`, { walletId });
  return store.runIdempotent(idempotentCall, messageCodec(CreateProposalResponseSchema), async (write) => {
    await store.requireRoom(proposalQuota, wallet.owner);
    return write(async (transaction) => {
      const proposal = await storeProposal({ governance, now }, transaction, wallet, {
        data,
        title,
        expiresAt,
      });
      return { proposal: packProposal(proposal) };
    });
  });
}

/** Stores a new proposal for a wallet's signers, within a transaction. */
export async function storeProposal(
  { governance, now }: Pick<DefiDeps, "governance" | "now">,
  transaction: WriteTransaction,
  { walletId, owner, threshold }: MultisigWallet,
  content: Pick<Proposal, "data" | "title" | "expiresAt">,
): Promise<Proposal> {
  const proposal: Proposal = {
    ...content,
    walletId,
    owner,
    threshold,
    proposalId: `proposal-${randomUUID()}`,
    status: "PENDING",
    signedBy: [],
    createdAt: now(),
    executedAt: undefined,
  };
  await governance.proposals.insert(transaction, proposal);
  return proposal;
}
