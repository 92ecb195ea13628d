import type { MessageInitShape } from "@bufbuild/protobuf";
import { SignProposalResponseSchema } from "#gen/defi/defi_service_pb.ts";
import type { CryptoProvider } from "../../crypto/provider.ts";
import { refuse } from "../../errors.ts";
import { messageCodec, type OnceCall } from "../../records/idempotency.ts";
import type { Viewer } from "../../records/ownership.ts";
import { withSealedKey } from "../../secrets/sealed-keys.ts";
import type { DefiParts } from "./create-multisig.ts";
import { packProposal, requirePending, signingHashOf } from "./proposal.ts";
import { type Proposal, type Signer, sealedKeyOf, signerAlgorithm } from "./store.ts";

/** Who signs what. */
export interface SignProposalOrder {
  readonly proposalId: string;
  /** The signer's address. */
  readonly signer: string;
  /** 3309 bytes of a signer who keeps its own key; else none. */
  readonly signature: Uint8Array;
  readonly viewer: Viewer;
  readonly once: OnceCall | undefined;
}

/**
 * Adds a signer's signature to a proposal.
 *
 * @throws PROPOSAL_NOT_FOUND, PROPOSAL_EXECUTED, PROPOSAL_EXPIRED, SIGNER_UNKNOWN, SIGNER_COUNTED, SIGNATURE_MISSING,
 *   SIGNATURE_INVALID, RECORD_DAMAGED, IDEMPOTENCY_KEY_REUSED
 */
export function signProposal(
  parts: DefiParts,
  { proposalId, signer: address, signature: given, viewer, once }: SignProposalOrder,
): Promise<MessageInitShape<typeof SignProposalResponseSchema>> {
  const { store, governance, now } = parts;
  return store.once(once, messageCodec(SignProposalResponseSchema), async (write) => {
    const found = await governance.findProposal(proposalId, viewer);
    const proposal = requirePending(found, proposalId, now());
    const signer = await governance.findSigner(proposal.walletId, address);
    if (signer === undefined) throw refuseStranger(proposal, address);
    refuseTwice(proposal, address);
    const signature = await obtainSignature(parts, proposal, signer, given);
    return write(async (transaction) => {
      const current = requirePending(
        await governance.findForChange(transaction, proposalId),
        proposalId,
        now(),
      );
      refuseTwice(current, address);
      const signed = await governance.addSignature(transaction, current, address, signature);
      return { proposal: packProposal(signed) };
    });
  });
}

async function obtainSignature(
  { provider, store }: DefiParts,
  proposal: Proposal,
  signer: Signer,
  given: Uint8Array,
): Promise<Uint8Array> {
  const message = signingHashOf(proposal);
  const { address } = signer;
  if (given.length > 0) {
    if (await isSignedBy(provider, signer, message, given)) return given;
    throw refuse(
      "SIGNATURE_INVALID",
      `signature: is not one of signer ${address} over the proposal's signingHash`,
      {
        signer: address,
      },
    );
  }
  if (signer.isKept)
    return withSealedKey(store, provider, sealedKeyOf(signer), (secretKey) =>
      provider.sign(secretKey, message),
    );
  throw refuse(
    "SIGNATURE_MISSING",
    `signer ${address} keeps its own key; give its signature over signingHash`,
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

function refuseStranger({ walletId }: Proposal, signer: string): Error {
  return refuse("SIGNER_UNKNOWN", `${signer} is no signer of wallet ${walletId}`, { signer, walletId });
}

function refuseTwice({ proposalId, signedBy }: Proposal, signer: string): void {
  if (!signedBy.includes(signer)) return;
  throw refuse("SIGNER_COUNTED", `signer ${signer} signed proposal ${proposalId} already; each counts once`, {
    signer,
    proposalId,
  });
}
