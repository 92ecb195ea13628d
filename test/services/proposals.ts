/** Helpers for governance tests: wallets with proposals, some of them signed. */
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import type { DefiService, Proposal } from "#gen/defi/defi_service_pb.ts";
import { bytesOf } from "../support/bytes.ts";
import { present, readPages } from "./answers.ts";
import { makeSigner, type Signer } from "./node-crypto.ts";

export type DefiClient = Client<typeof DefiService>;

export const data = bytesOf("pay 5 to bob");

/** A proposal, and who can sign it. */
export interface Proposed {
  readonly proposalId: string;
  readonly signers: string[];
  readonly signingHash: Uint8Array;
}

/** Creates a proposal in a wallet whose signers' keys the service stores; some signers sign it. */
export async function propose(
  client: DefiClient,
  { signerCount = 3, threshold = 2, signed = 0, expiresAt = undefined as Date | undefined } = {},
): Promise<Proposed> {
  const { walletId, signers } = await client.createMultisig({ signerCount, threshold });
  const end = expiresAt && { expiresAt: timestampFromDate(expiresAt) };
  const { proposal } = await client.createProposal({ walletId, data, ...end });
  const { proposalId, signingHash } = present(proposal);
  for (const signer of signers.slice(0, signed)) await client.signProposal({ proposalId, signer });
  return { proposalId, signers, signingHash };
}

/** Creates a proposal in a wallet whose signers keep their own keys. */
export async function proposeToOwners(client: DefiClient) {
  const pairs = [makeSigner("ml-dsa-65"), makeSigner("ml-dsa-65")];
  const signerPublicKeys = pairs.map(({ publicKey }) => publicKey);
  const { walletId, signers } = await client.createMultisig({ signerPublicKeys, threshold: 2 });
  const { proposal } = await client.createProposal({ walletId, data });
  const { proposalId, signingHash } = present(proposal);
  const owners = pairs.map(({ sign }, i) => ({ sign, signer: signers[i] ?? "" }));
  return { proposalId, signingHash, owners: owners as [Owner, Owner] };
}

/** A signer that keeps its own key. */
export interface Owner extends Pick<Signer, "sign"> {
  readonly signer: string;
}

/** Reads a proposal from the list. */
export async function readProposal(client: DefiClient, proposalId: string): Promise<Proposal> {
  const { rows } = await readPages(
    (pageToken) => client.listProposals({ pageToken }),
    ({ proposals }) => proposals,
  );
  return present(rows.find((one) => one.proposalId === proposalId));
}
