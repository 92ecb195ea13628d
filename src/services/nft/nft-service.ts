/** nft.NftService: unpack, call, pack. */
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { NftService } from "#gen/nft/nft_service_pb.ts";
import { encodePublicKeyPem } from "../../crypto/key-encoding.ts";
import { readPage } from "../../fields.ts";
import type { OnceCall } from "../../storage/once.ts";
import { creatorAlgorithm, mint, type NftParts } from "./mint.ts";
import { tokenList, transferList } from "./store.ts";
import { packTransfer, requireToken, transfer } from "./transfer.ts";
import { verify } from "./verify.ts";

/** What the service needs. */
export interface NftServiceParts extends NftParts {
  /** Tells under which idempotency key a call came, if it has one. */
  readonly onceOf: (context: HandlerContext) => OnceCall | undefined;
}

/** Makes the implementation. */
export function nftService(parts: NftServiceParts): ServiceImpl<typeof NftService> {
  const { store, tokens, onceOf } = parts;
  return {
    mint: ({ name, description, artworkUri }, context) =>
      mint(parts, { name, description, artworkUri }, onceOf(context)),
    transfer: ({ tokenId, newOwner, fromOwner }, context) =>
      transfer(parts, {
        tokenId,
        newOwner: newOwner.toLowerCase(),
        fromOwner: fromOwner.toLowerCase(),
        once: onceOf(context),
      }),
    verify: async (req) => {
      const fault = await verify(parts, req);
      return { valid: fault === undefined, reason: fault ?? "" };
    },
    getToken: async ({ tokenId }) => {
      const { token } = requireToken(await tokens.find(tokenId), tokenId);
      const { mintedAt, transferCount: _, ...shown } = token;
      return {
        ...shown,
        algorithm: creatorAlgorithm,
        creatorPublicKeyPem: encodePublicKeyPem(creatorAlgorithm, token.creatorPublicKey),
        mintedAt: timestampFromDate(mintedAt),
      };
    },
    listTokens: async ({ owner: given, ...fields }) => {
      const owner = given.toLowerCase();
      const { rows, nextPageToken } = await tokens.list(readPage(fields, tokenList(owner)), owner);
      return { tokens: [...rows], nextPageToken, totalSize: await tokens.count(owner) };
    },
    getHistory: async ({ tokenId, ...fields }) => {
      const { token } = requireToken(await tokens.find(tokenId), tokenId);
      const page = await tokens.listTransfers(readPage(fields, transferList(tokenId)), tokenId);
      return {
        history: page.rows.map(({ transfer }) => packTransfer(transfer)),
        nextPageToken: page.nextPageToken,
        totalSize: token.transferCount,
      };
    },
    getHealth: async () => {
      const tokenCount = await store.ifReachable(() => tokens.count(""));
      return tokenCount === undefined ? { serviceStatus: "DOWN" } : { serviceStatus: "UP", tokenCount };
    },
  };
}
