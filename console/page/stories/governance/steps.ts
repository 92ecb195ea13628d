/** The steps of a proposal: the browser writes and hashes what is signed itself, from what the reader typed. */
import { timestampDate, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { DefiService } from "#gen/defi/defi_service_pb.ts";
import { hashProposal, type SignedProposal, writeSigningText } from "../../../../src/client/hash-proposal.ts";
import { verifyHere } from "../../algorithms.ts";
import type { Caller } from "../../caller.ts";
import { deriveAddress, makeSigningKey } from "../../signing-key.ts";
import { areEqual, toUtf8 } from "../../values.ts";
import { makeBrowserSigner, makeServiceSigner, type Signer } from "./signers.ts";

const { createMultisig, createProposal, signProposal, executeProposal } = DefiService.method;
export const algorithm = "ML-DSA-65";
export const threshold = 2;
const lifetimeMs = 60 * 60 * 1000;

/** A proposal by its name and the hash that signers sign, as the browser computed it. */
export interface Proposed {
  readonly proposalId: string;
  readonly hash: Uint8Array;
}

export type Signers = Awaited<ReturnType<typeof gatherSigners>>;
export type Signed = Awaited<ReturnType<typeof signAs>>;

/** @param hasKeyService without it, all keys are made in the browser */
export async function gatherSigners(caller: Caller, hasKeyService: boolean) {
  const makeOther = (name: string): Promise<Signer> =>
    hasKeyService ? makeServiceSigner(caller, name) : makeBrowserSigner(name);
  const you = await makeBrowserSigner("You");
  const grace = await makeOther("Grace");
  const alan = await makeOther("Alan");
  return { you, grace, alan, all: [you, grace, alan] };
}

export async function foundWallet({ call }: Caller, { all }: Signers) {
  const { walletId, signers } = await call(createMultisig, {
    threshold,
    signerPublicKeys: all.map(({ publicKey }) => publicKey),
  });
  return { walletId, isSame: all.every(({ address }, at) => signers[at] === address) };
}

export async function propose(
  { call }: Caller,
  { walletId }: { readonly walletId: string },
  { title, text }: { readonly title: string; readonly text: string },
) {
  const data = toUtf8(text);
  const expiresAt = timestampFromMs(Date.now() + lifetimeMs);
  const { proposal } = await call(createProposal, { walletId, title, data, expiresAt });
  if (proposal?.createdAt === undefined) throw new Error("the server sent no proposal");
  const { proposalId, createdAt } = proposal;
  // ID and time come from the server; everything else is the reader's own input, not the server's answer.
  const facts: SignedProposal = { walletId, title, data, expiresAt, threshold, proposalId, createdAt };
  const hash = await hashProposal(facts);
  return { proposalId, hash, text: writeSigningText(facts), isSame: areEqual(hash, proposal.signingHash) };
}

export function executeEarly({ callRefused }: Caller, { proposalId }: Proposed) {
  return callRefused(executeProposal, { proposalId });
}

/** Signs with a key that belongs to no signer: once under its own address, and once under Grace's. */
export async function signAsStranger(
  { callRefused }: Caller,
  { grace }: Signers,
  { proposalId, hash }: Proposed,
) {
  const stranger = await makeSigningKey(algorithm);
  const signature = stranger.sign(hash);
  const signer = await deriveAddress(stranger.publicKey);
  return {
    asHimself: await callRefused(signProposal, { proposalId, signer, signature }),
    asGrace: await callRefused(signProposal, { proposalId, signer: grace.address, signature }),
    isGraces: await verifyHere(algorithm, signature, hash, grace.publicKey),
  };
}

/** Has a signer sign, and checks the signature here before it is sent. */
export async function signAs(caller: Caller, signer: Signer, { proposalId, hash }: Proposed) {
  const signature = await signer.sign(caller, hash);
  const browser = await verifyHere(algorithm, signature, hash, signer.publicKey);
  const { proposal } = await caller.call(signProposal, { proposalId, signer: signer.address, signature });
  const signedBy = proposal?.signedBy ?? [];
  const count = proposal?.signatureCount ?? 0;
  return { signature, count, signedBy, verdicts: { browser, server: signedBy.includes(signer.address) } };
}

/** Signs in the browser, and sends the signature a second time. */
export async function signTwice(caller: Caller, { you }: Signers, proposed: Proposed) {
  const signed = await signAs(caller, you, proposed);
  const { proposalId } = proposed;
  const { signature } = signed;
  const again = await caller.callRefused(signProposal, { proposalId, signer: you.address, signature });
  return { ...signed, again };
}

export async function executeTwice({ call, callRefused }: Caller, { proposalId }: Proposed) {
  const { proposal, executedAt } = await call(executeProposal, { proposalId });
  const again = await callRefused(executeProposal, { proposalId });
  return { status: proposal?.proposalStatus, executedAt: executedAt && timestampDate(executedAt), again };
}
