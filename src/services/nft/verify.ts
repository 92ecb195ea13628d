import type { VerifyRequest } from "#gen/nft/nft_service_pb.ts";
import { deriveAddress } from "../../crypto/address.ts";
import { CryptoError } from "../../crypto/crypto-error.ts";
import type { CryptoProvider, PublicKey } from "../../crypto/provider.ts";
import type { Principal } from "../../records/ownership.ts";
import type { Stored } from "../../records/table-declaration.ts";
import { checkSignatureLength, readPublicKey } from "../fields.ts";
import { creatorAlgorithm, hashMetadata, type NftDeps } from "./mint.ts";
import type { Token } from "./store.ts";
import { requireToken } from "./transfer.ts";

/** The part of a token that is invalid. */
export type Fault = "SIGNATURE" | "METADATA" | "CREATOR" | "HISTORY" | "RECORD";

/** Transfers to read per query. */
const chunkRows = 1000;

/**
 * Verifies a creator's signature and, for a token, its record and history.
 *
 * @returns the invalid part; undefined if everything is intact
 * @throws TOKEN_NOT_FOUND, KEY_INVALID, LENGTH_INVALID
 */
export async function verify(
  deps: NftDeps,
  input: VerifyRequest,
  principal: Principal,
): Promise<Fault | undefined> {
  if (input.tokenId !== "") {
    const found = await deps.tokens.find({ tokenId: input.tokenId }, { principal });
    return verifyToken(deps, requireToken(found, input.tokenId));
  }
  const { creatorSignature, metadataHash } = input;
  const publicKey = readPublicKey(deps.provider, creatorAlgorithm, input, "creatorPublicKey");
  checkSignatureLength(creatorAlgorithm, creatorSignature, "creatorSignature");
  const hash = Buffer.from(metadataHash, "hex");
  return (await deps.provider.verify(publicKey, hash, creatorSignature)) ? undefined : "SIGNATURE";
}

async function verifyToken(
  deps: NftDeps,
  { record: token, isIntact }: Stored<Token>,
): Promise<Fault | undefined> {
  const { provider } = deps;
  if (hashMetadata(token) !== token.metadataHash) return "METADATA";
  if (deriveAddress(token.creatorPublicKey) !== token.creatorAddress) return "CREATOR";
  const publicKey = importCreatorKey(provider, token.creatorPublicKey);
  if (publicKey === undefined) return "CREATOR";
  const isSigned = await provider.verify(
    publicKey,
    Buffer.from(token.metadataHash, "hex"),
    token.creatorSignature,
  );
  if (!isSigned) return "SIGNATURE";
  if (!(await isHistoryWhole(deps, token))) return "HISTORY";
  return isIntact ? undefined : "RECORD";
}

/** A key that was changed outside the server may be malformed. */
function importCreatorKey(provider: CryptoProvider, raw: Uint8Array): PublicKey | undefined {
  try {
    return provider.importPublicKey(creatorAlgorithm, { raw });
  } catch (error) {
    if (error instanceof CryptoError && error.code === "INVALID_KEY") return undefined;
    throw error;
  }
}

/** Follows the token's transfers from its creator to the owner in its record. */
export async function isHistoryWhole({ tokens }: Pick<NftDeps, "tokens">, token: Token): Promise<boolean> {
  const { tokenId } = token;
  let owner = token.creatorAddress;
  let index = 0;
  while (index < token.transferCount) {
    const limit = Math.min(chunkRows, token.transferCount - index);
    const { rows } = await tokens.transfers.list({ limit, after: index }, { filters: { tokenId } });
    if (rows.length === 0) return false;
    for (const { record: transfer, isIntact } of rows) {
      index += 1;
      if (!isIntact || transfer.index !== index || transfer.fromAddress !== owner) return false;
      owner = transfer.toAddress;
    }
  }
  // A transfer made after the token was read is not part of this history yet, but it must be real.
  const { rows: later } = await tokens.transfers.list({ limit: 1, after: index }, { filters: { tokenId } });
  return owner === token.currentOwner && later.every(({ isIntact }) => isIntact);
}
