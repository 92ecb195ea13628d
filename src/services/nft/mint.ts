import { hash, randomUUID } from "node:crypto";
import canonicalize from "canonicalize";
import { type MintRequest, MintResponseSchema } from "#gen/nft/nft_service_pb.ts";
import { deriveAddress } from "../../crypto/address.ts";
import { withFreshKeyPair } from "../../crypto/fresh-key-pair.ts";
import { encodePublicKeyPem } from "../../crypto/key-encoding.ts";
import type { CallerInput } from "../../identity/principal.ts";
import { messageCodec } from "../../records/idempotency.ts";
import type { ServiceDeps } from "../service-deps.ts";
import type { NftStore, Token } from "./store.ts";
import { tokenQuota } from "./tables.ts";

export const creatorAlgorithm = "ML-DSA-65";

export interface NftDeps extends ServiceDeps {
  readonly tokens: NftStore;
}

/**
 * Mints a token: signs the 32 bytes of its metadata hash with a new key pair (FIPS 204, section 5.2, pure,
 * empty context), then erases the secret key.
 *
 * @throws IDEMPOTENCY_KEY_REUSED, QUOTA_EXCEEDED
 */
export function mint(
  { provider, store, tokens, now }: NftDeps,
  { name, description, artworkUri }: MintRequest,
  { owner, idempotentCall }: CallerInput,
) {
  return store.runIdempotent(idempotentCall, messageCodec(MintResponseSchema), async (write) => {
    await store.requireRoom(tokenQuota, owner);
    const metadata = { name, description, artworkUri };
    const metadataHash = hashMetadata(metadata);
    const { creatorPublicKey, creatorSignature } = await withFreshKeyPair(
      provider,
      creatorAlgorithm,
      async ({ publicKey, secretKey }) => ({
        creatorPublicKey: publicKey.exportRaw(),
        creatorSignature: await provider.sign(secretKey, Buffer.from(metadataHash, "hex")),
      }),
    );
    const creatorAddress = deriveAddress(creatorPublicKey);
    const token: Token = {
      tokenId: `token-${randomUUID()}`,
      ...metadata,
      metadataHash,
      creatorAddress,
      creatorPublicKey,
      creatorSignature,
      currentOwner: creatorAddress,
      transferCount: 0,
      minter: owner,
      mintedAt: now(),
    };
    return write(async (transaction) => {
      await tokens.insert(transaction, token);
      return {
        tokenId: token.tokenId,
        creatorAddress,
        signature: creatorSignature,
        creatorPublicKey,
        creatorPublicKeyPem: encodePublicKeyPem(creatorAlgorithm, creatorPublicKey),
        metadataHash,
        owner: creatorAddress,
      };
    });
  });
}

export interface Metadata {
  readonly name: string;
  readonly description: string;
  readonly artworkUri: string;
}

/** SHA-256 over the RFC 8785 canonical JSON of the metadata; 64 lower-case hexadecimal digits. */
export function hashMetadata({ name, description, artworkUri }: Metadata): string {
  return hash("sha256", canonicalize({ artworkUri, description, name }) ?? "", "hex");
}
