import type { MessageInitShape } from "@bufbuild/protobuf";
import { SignProposalResponseSchema } from "#gen/defi/defi_service_pb.ts";
import type { CryptoProvider } from "../../crypto/provider.ts";
import { refuse } from "../../errors.ts";
import type { CallerInput } from "../../identity/principal.ts";
import { messageCodec } from "../../records/idempotency.ts";
import { describeSealedKey } from "../../records/table-declaration.ts";
import { withSealedKey } from "../../secrets/sealed-keys.ts";
import type { DefiDeps } from "./create-multisig.ts";
import { hashProposal, packProposal, requirePending } from "./proposal.ts";
import type { Proposal } from "./proposal-store.ts";
import { type Signer, signerAlgorithm } from "./store.ts";
import { signerTable } from "./tables.ts";

/** The proposal to sign, and its signer. */
export interface SignProposalInput extends CallerInput {
  readonly proposalId: string;
  /** The signer's address. */
  readonly signer: string;
  /** 3309 bytes for a signer with its own key; otherwise empty. */
  readonly signature: Uint8Array;
}

/**
 * Adds a signer's signature to a proposal.
 *
 * @throws PROPOSAL_NOT_FOUND, PROPOSAL_EXECUTED, PROPOSAL_EXPIRED, SIGNER_UNKNOWN, ALREADY_SIGNED, SIGNATURE_MISSING,
 *   SIGNATURE_INVALID, RECORD_DAMAGED, IDEMPOTENCY_KEY_REUSED
 */
export function signProposal(
  deps: DefiDeps,
  { proposalId, signer: address, signature: given, principal, idempotentCall }: SignProposalInput,
): Promise<MessageInitShape<typeof SignProposalResponseSchema>> {
  const { store, governance, now } = deps;
  return store.runIdempotent(idempotentCall, messageCodec(SignProposalResponseSchema), async (write) => {
    const found = await governance.findProposal(proposalId, principal);
    const proposal = requirePending(found, proposalId, now());
    const signer = await governance.findSigner(proposal.walletId, address);
    if (signer === undefined) throw signerUnknown(proposal, address);
    requireFirstSignature(proposal, address);
    const signature = await obtainSignature(deps, proposal, signer, given);
    return write(async (transaction) => {
      const current = requirePending(
        await governance.findForChange(transaction, proposalId),
        proposalId,
        now(),
      );
      requireFirstSignature(current, address);
      const signed = await governance.addSignature(transaction, current, address, signature);
      return { proposal: packProposal(signed) };
    });
  });
}

async function obtainSignature(
  { provider, store }: DefiDeps,
  proposal: Proposal,
  signer: Signer,
  given: Uint8Array,
): Promise<Uint8Array> {
  const message = hashProposal(proposal);
  const { address } = signer;
  if (given.length > 0) {
    if (await isSignedBy(provider, signer, message, given)) return given;
    throw refuse(
      "SIGNATURE_INVALID",
      `signature: is not by signer ${address} over the proposal's signingHash`,
      {
        signer: address,
      },
    );
  }
  if (signer.isServerHeld)
    return withSealedKey(
      store,
      provider,
      describeSealedKey(signerTable, signerAlgorithm, signer),
      (secretKey) => provider.sign(secretKey, message),
    );
  throw refuse(
    "SIGNATURE_MISSING",
    `signer ${address} has its own key; send its signature over signingHash`,
    {
      signer: address,
    },
  );
}

/** Verifies a signature over a proposal's signing hash (FIPS 204, section 5.3, pure, empty context). */
export function isSignedBy(
  provider: CryptoProvider,
  { publicKey: raw }: Signer,
  message: Uint8Array,
  signature: Uint8Array,
): Promise<boolean> {
  return provider.verify(provider.importPublicKey(signerAlgorithm, { raw }), message, signature);
}

function signerUnknown({ walletId }: Proposal, signer: string): Error {
  return refuse("SIGNER_UNKNOWN", `${signer} is not a signer of wallet ${walletId}`, { signer, walletId });
}

function requireFirstSignature({ proposalId, signedBy }: Proposal, signer: string): void {
  if (!signedBy.includes(signer)) return;
  throw refuse(
    "ALREADY_SIGNED",
    `signer ${signer} has already signed proposal ${proposalId}; each signer counts once`,
    {
      signer,
      proposalId,
    },
  );
}
