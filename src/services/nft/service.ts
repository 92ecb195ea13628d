/** nft.NftService: unpack, call, pack. */

import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { NftService } from "#gen/nft/nft_service_pb.ts";
import { encodePublicKeyPem } from "../../crypto/key-encoding.ts";
import { RecordDamaged } from "../../database/store-error.ts";
import { onceOf, viewerOf } from "../../identity/principal.ts";
import { listSeenBy, type Viewer } from "../../records/ownership.ts";
import { damageOf, readPage } from "../fields.ts";
import { creatorAlgorithm, mint, type NftParts } from "./mint.ts";
import { type Token, tokenList, transferList } from "./store.ts";
import { packTransfer, requireToken, transfer } from "./transfer.ts";
import { verify } from "./verify.ts";

/** What the service needs. */
export interface NftServiceParts extends NftParts {}

/** Makes the implementation. */
export function nftService(parts: NftServiceParts): ServiceImpl<typeof NftService> {
  const { store, tokens } = parts;
  const findToken = async (tokenId: string, viewer: Viewer): Promise<Token> => {
    const { token, isIntact } = requireToken(await tokens.find(tokenId, viewer), tokenId);
    // Of a token that was changed nobody knows whose it is; who sees everybody's may look.
    if (!isIntact && viewer.owner !== undefined) throw new RecordDamaged(`token ${tokenId}`);
    return token;
  };
  return {
    mint: ({ name, description, artworkUri }, context) =>
      mint(parts, { name, description, artworkUri }, { viewer: viewerOf(context), once: onceOf(context) }),
    transfer: ({ tokenId, newOwner, fromOwner }, context) =>
      transfer(parts, {
        tokenId,
        newOwner: newOwner.toLowerCase(),
        fromOwner: fromOwner.toLowerCase(),
        viewer: viewerOf(context),
        once: onceOf(context),
      }),
    verify: async (req, context) => {
      const fault = await verify(parts, req, viewerOf(context));
      return { valid: fault === undefined, reason: fault ?? "" };
    },
    getToken: async ({ tokenId }, context) => {
      const token = await findToken(tokenId, viewerOf(context));
      const { mintedAt, transferCount: _, minter: __, ...shown } = token;
      return {
        ...shown,
        algorithm: creatorAlgorithm,
        creatorPublicKeyPem: encodePublicKeyPem(creatorAlgorithm, token.creatorPublicKey),
        mintedAt: timestampFromDate(mintedAt),
      };
    },
    listTokens: async ({ owner: given, ...fields }, context) => {
      const owner = given.toLowerCase();
      const viewer = viewerOf(context);
      const page = readPage(fields, listSeenBy(viewer, tokenList(owner)));
      const { rows, nextPageToken } = await tokens.list(page, owner, viewer);
      const listed = rows.map(({ token, isIntact }) => ({
        tokenId: token.tokenId,
        name: token.metadata.name,
        currentOwner: token.currentOwner,
        ...damageOf({ isIntact }),
      }));
      return { tokens: listed, nextPageToken, totalSize: await tokens.count(owner, viewer) };
    },
    getHistory: async ({ tokenId, ...fields }, context) => {
      const token = await findToken(tokenId, viewerOf(context));
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
