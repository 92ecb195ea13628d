import { type SignProposalRequest, SignProposalResponseSchema } from "#gen/defi/defi_service_pb.ts";
import type { CryptoProvider } from "../../crypto/provider.ts";
import { refuse } from "../../errors.ts";
import type { CallerInput } from "../../identity/principal.ts";
import { messageCodec } from "../../records/idempotency.ts";
import { describeSealedKey } from "../../records/table-declaration.ts";
import { withSealedKey } from "../../secrets/sealed-keys.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import type { DefiDeps } from "./create-multisig.ts";
import { findPending, hashProposal, packProposal } from "./proposal.ts";
import { type Proposal, type Signer, signerAlgorithm } from "./store.ts";
import { signerTable } from "./tables.ts";

/**
 * Adds a signer's signature to a proposal.
 *
 * @throws PROPOSAL_NOT_FOUND, PROPOSAL_EXECUTED, PROPOSAL_EXPIRED, SIGNER_UNKNOWN, ALREADY_SIGNED, SIGNATURE_MISSING,
 *   SIGNATURE_INVALID, RECORD_DAMAGED, IDEMPOTENCY_KEY_REUSED
 */
export function signProposal(
  deps: DefiDeps,
  { proposalId, signer: name, signature: given }: SignProposalRequest,
  { principal, idempotentCall }: CallerInput,
) {
  const { store, governance } = deps;
  const address = name.toLowerCase();
  return store.runIdempotent(idempotentCall, messageCodec(SignProposalResponseSchema), async (write) => {
    const proposal = await findPending(deps, proposalId, { principal });
    const signer = await governance.signers.findIntact({ walletId: proposal.walletId, address });
    if (signer === undefined) throw signerUnknown(proposal, address);
    requireFirstSignature(proposal, address);
    const signature = await obtainSignature(deps, proposal, signer, given);
    return write(async (transaction) => {
      const signed = await storeSignature(deps, transaction, proposalId, { address, signature });
      return { proposal: packProposal(signed) };
    });
  });
}

/**
 * Adds a verified signature to a proposal, within a transaction.
 *
 * @throws PROPOSAL_NOT_FOUND, PROPOSAL_EXECUTED, PROPOSAL_EXPIRED, ALREADY_SIGNED, RECORD_DAMAGED
 */
export async function storeSignature(
  deps: Pick<DefiDeps, "governance" | "now">,
  transaction: WriteTransaction,
  proposalId: string,
  { address, signature }: { readonly address: string; readonly signature: Uint8Array },
): Promise<Proposal> {
  const current = await findPending(deps, proposalId, transaction);
  requireFirstSignature(current, address);
  return deps.governance.addSignature(transaction, current, address, signature);
}

/**
 * Verifies a signer's signature over a proposal, or signs for a signer whose key the service stores.
 *
 * @param given empty if the signer sent none
 * @param field the field that has it, for error messages
 * @throws SIGNATURE_INVALID, SIGNATURE_MISSING
 */
export async function obtainSignature(
  deps: DefiDeps,
  proposal: Proposal,
  signer: Signer,
  given: Uint8Array,
  field = "signature",
): Promise<Uint8Array> {
  const { provider } = deps;
  const message = hashProposal(proposal);
  const { address } = signer;
  if (given.length > 0) {
    if (await isSignedBy(provider, signer, message, given)) return given;
    throw refuse(
      "SIGNATURE_INVALID",
      `${field}: is not the signature of signer ${address} over the proposal's signingHash`,
      { signer: address },
    );
  }
  if (signer.isServerHeld)
    return withSealedKey(deps, describeSealedKey(signerTable, signerAlgorithm, signer), (secretKey) =>
      provider.sign(secretKey, message),
    );
  throw refuse(
    "SIGNATURE_MISSING",
    `signer ${address} keeps its own key; send its signature over signingHash as ${field}`,
    { signer: address },
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
