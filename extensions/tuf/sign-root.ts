import { type SignRootRequest, SignRootResponseSchema } from "#gen/tuf/repository_service_pb.ts";
import { refuse, refuseField } from "../../src/errors.ts";
import type { CallerInput } from "../../src/identity/principal.ts";
import { messageCodec } from "../../src/records/idempotency.ts";
import { obtainSignature, storeSignature } from "../../src/services/defi/sign-proposal.ts";
import type { TufDeps } from "./deps.ts";
import { isSignedBy } from "./keys.ts";
import {
  findProposedRoot,
  type ProposedRoot,
  packProposedRoot,
  readRootWallets,
  requireNext,
} from "./root-proposal.ts";
import type { Repository } from "./tables.ts";
import { toSignerKey } from "./wallets.ts";

/** A signer's signature over a root, and its vote if it has one. */
interface SignerInput {
  readonly address: string;
  readonly signature: Uint8Array;
  readonly vote: Uint8Array | undefined;
}

/**
 * Adds a signer's signature over a proposed root, and its vote.
 *
 * @throws REPOSITORY_NOT_FOUND, PROPOSAL_NOT_FOUND, PROPOSAL_EXPIRED, ROOT_OUTDATED, SIGNER_UNKNOWN,
 *   ALREADY_SIGNED, SIGNATURE_INVALID, SIGNATURE_MISSING, IDEMPOTENCY_KEY_REUSED
 */
export async function signRoot(
  deps: TufDeps,
  { repository: name, proposalId, signer, rootSignature: signature, vote }: SignRootRequest,
  { principal, idempotentCall }: CallerInput,
) {
  const { store, tuf } = deps;
  const repository = await tuf.findRepository(name, { principal });
  const address = signer.toLowerCase();
  return store.runIdempotent(idempotentCall, messageCodec(SignRootResponseSchema), async (write) => {
    const proposed = await findProposedRoot(deps, repository, proposalId);
    requireNext(deps, repository, proposed);
    const input = await verify(deps, repository, proposed, { address, signature, vote });
    return write(async (transaction) => {
      const current = await tuf.findRepository(name, transaction);
      requireNext(deps, current, proposed);
      if (!(await tuf.insertRootSignature(transaction, proposalId, input)))
        throw alreadySigned(proposalId, address);
      const { proposal } = await findProposedRoot(deps, current, proposalId, transaction);
      // The others may have decided since.
      if (input.vote !== undefined && proposal.status === "PENDING")
        await storeSignature(deps, transaction, proposalId, { address, signature: input.vote });
      const signed = await findProposedRoot(deps, current, proposalId, transaction);
      return { proposal: await packProposedRoot(deps, current, signed, transaction) };
    });
  });
}

/** @throws SIGNER_UNKNOWN, SIGNATURE_INVALID, SIGNATURE_MISSING */
async function verify(
  deps: TufDeps,
  repository: Repository,
  proposed: ProposedRoot,
  { address, signature, vote = new Uint8Array() }: SignerInput,
): Promise<SignerInput> {
  const { proposal } = proposed;
  const { current, next } = await readRootWallets(deps, repository, proposed);
  const voter = current.signers.find((signer) => signer.address === address);
  const signer = voter ?? next.signers.find((candidate) => candidate.address === address);
  if (signer === undefined)
    throw refuse("SIGNER_UNKNOWN", `${address} is a signer of neither the current nor the proposed root`, {
      signer: address,
    });
  if (voter === undefined && vote.length > 0)
    throw refuseField(
      "vote",
      "is not allowed: the signer is only in the proposed root; send rootSignature alone",
    );
  if (!(await isSignedBy(deps.provider, toSignerKey(signer), proposal.data, signature)))
    throw refuse(
      "SIGNATURE_INVALID",
      `rootSignature: is not the TAP 21 signature of signer ${address} over the proposed root`,
      { signer: address },
    );
  const mustVote =
    voter !== undefined && proposal.status === "PENDING" && !proposal.signedBy.includes(address);
  return {
    address,
    signature,
    vote: mustVote ? await obtainSignature(deps, proposal, voter, vote, "vote") : undefined,
  };
}

function alreadySigned(proposalId: string, signer: string): Error {
  return refuse("ALREADY_SIGNED", `signer ${signer} has already signed the root in proposal ${proposalId}`, {
    signer,
    proposalId,
  });
}
