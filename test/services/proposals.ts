/** Helpers for governance tests: wallets with proposals, some of them signed. */
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import type { DefiService, Proposal } from "#gen/defi/defi_service_pb.ts";
import { bytesOf } from "../support/bytes.ts";
import { present } from "./answers.ts";

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
  const pairs = [generateKeyPairSync("ml-dsa-65"), generateKeyPairSync("ml-dsa-65")];
  const signerPublicKeys = pairs.map(({ publicKey }) =>
    publicKey.export({ format: "der", type: "spki" }).subarray(-1952),
  );
  const { walletId, signers } = await client.createMultisig({ signerPublicKeys, threshold: 2 });
  const { proposal } = await client.createProposal({ walletId, data });
  const { proposalId, signingHash } = present(proposal);
  const owners = pairs.map(({ privateKey }, i) => ({ privateKey, signer: signers[i] ?? "" }));
  return { proposalId, signingHash, owners: owners as [Owner, Owner] };
}

/** A signer that keeps its own key. */
export interface Owner {
  readonly privateKey: KeyObject;
  readonly signer: string;
}

/** Reads a proposal from the list. */
export async function readProposal(client: DefiClient, proposalId: string): Promise<Proposal> {
  let pageToken = "";
  do {
    const page = await client.listProposals({ pageToken });
    const found = page.proposals.find((one) => one.proposalId === proposalId);
    if (found) return found;
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  throw new Error(`no proposal ${proposalId}`);
}
