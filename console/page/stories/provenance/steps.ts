/** The steps of a token: what its creator signed, who owned it, and how a change or a forgery shows. */
import { type MintResponse, NftService } from "#gen/nft/nft_service_pb.ts";
import { verifyHere } from "../../algorithms.ts";
import type { Caller } from "../../caller.ts";
import type { Failure } from "../../failure.ts";
import { fromHex } from "../../hex.ts";
import { deriveAddress, makeSigningKey } from "../../signing-key.ts";
import { toHex } from "../../values.ts";
import { canonicalize, changeLetter, hashMetadata, isUnbroken, type Metadata } from "./metadata.ts";

const { mint, transfer, verify, getToken, getHistory } = NftService.method;
export const algorithm = "ML-DSA-65";

type Minted = Awaited<ReturnType<typeof mintToken>>;

export async function mintToken({ call }: Caller, { name, description, artworkUri }: Metadata) {
  const metadata = { name, description, artworkUri };
  const token = await call(mint, metadata);
  const hash = await hashMetadata(metadata);
  return {
    metadata,
    token,
    isHashEqual: toHex(hash) === token.metadataHash,
    isSigned: await verifyHere(algorithm, token.signature, hash, token.creatorPublicKey),
    isAddressEqual: (await deriveAddress(token.creatorPublicKey)) === token.creatorAddress,
  };
}

/** Transfers the token from its creator to a second owner, and on to a third. */
export async function transferTwice({ call }: Caller, { token }: Minted) {
  const { tokenId, creatorAddress } = token;
  const [second, third] = [await makeAddress(), await makeAddress()];
  await call(transfer, { tokenId, fromOwner: creatorAddress, newOwner: second });
  const { currentOwner } = await call(transfer, { tokenId, fromOwner: second, newOwner: third });
  return { owners: [creatorAddress, second, third], currentOwner };
}

/** Transfers the token from its creator once more. */
export async function sellAgain({ callRefused }: Caller, { token }: Minted): Promise<Failure> {
  const { tokenId, creatorAddress } = token;
  return callRefused(transfer, { tokenId, fromOwner: creatorAddress, newOwner: await makeAddress() });
}

/** Checks the stored token and its history against what the browser got when it was minted. */
export async function traceHistory({ call }: Caller, { token: minted }: Minted) {
  const { tokenId, creatorAddress, creatorPublicKey, signature } = minted;
  const { history, totalSize } = await call(getHistory, { tokenId });
  const { currentOwner, metadata } = await call(getToken, { tokenId });
  const { valid } = await call(verify, { tokenId });
  const hash = await hashMetadata(metadata ?? { name: "", description: "", artworkUri: "" });
  return {
    history,
    currentOwner,
    valid,
    isWhole: history.length === totalSize && isUnbroken(creatorAddress, history, currentOwner),
    isSigned: await verifyHere(algorithm, signature, hash, creatorPublicKey),
  };
}

/** Changes a letter of the name in a copy. */
export async function alterName(caller: Caller, { metadata, token }: Minted, place: string) {
  const copy = { ...metadata, name: changeLetter(metadata.name, Math.trunc(Number(place)) || 0) };
  const [before, after] = [canonicalize(metadata), canonicalize(copy)];
  const hash = await hashMetadata(copy);
  return {
    copy,
    change: { before, after, index: before.findIndex((byte, at) => byte !== after[at]) },
    hash,
    original: fromHex(token.metadataHash),
    ...(await verifyOnBothSides(caller, hash, token, token.creatorPublicKey)),
  };
}

/** Mints the same words with another key. */
export async function forgeToken(caller: Caller, { metadata, token }: Minted) {
  const forged = await caller.call(mint, metadata);
  const hash = fromHex(forged.metadataHash);
  const { verdicts: withOwnKey } = await verifyOnBothSides(caller, hash, forged, forged.creatorPublicKey);
  const { verdicts: withCreatorKey } = await verifyOnBothSides(caller, hash, forged, token.creatorPublicKey);
  return {
    forgerAddress: forged.creatorAddress,
    creatorAddress: token.creatorAddress,
    isSameHash: forged.metadataHash === token.metadataHash,
    withOwnKey,
    withCreatorKey,
  };
}

async function verifyOnBothSides(
  { call }: Caller,
  hash: Uint8Array,
  { signature: creatorSignature }: MintResponse,
  creatorPublicKey: Uint8Array,
) {
  const metadataHash = toHex(hash);
  const { valid, reason } = await call(verify, { metadataHash, creatorSignature, creatorPublicKey });
  const browser = await verifyHere(algorithm, creatorSignature, hash, creatorPublicKey);
  return { reason, verdicts: { server: valid, browser } };
}

/** Makes the address of a new key pair, whose secret half is not needed. */
async function makeAddress(): Promise<string> {
  const { publicKey } = await makeSigningKey(algorithm);
  return deriveAddress(publicKey);
}
