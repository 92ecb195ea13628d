/** nft.NftService: unpack, call, pack. */

import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { NftService } from "#gen/nft/nft_service_pb.ts";
import { encodePublicKeyPem } from "../../crypto/key-encoding.ts";
import { RecordDamagedError } from "../../database/store-error.ts";
import { readCaller, readPrincipal } from "../../identity/principal.ts";
import type { Principal } from "../../records/ownership.ts";
import { readHealth, readList, readPage } from "../fields.ts";
import { creatorAlgorithm, mint, type NftDeps } from "./mint.ts";
import type { Token } from "./store.ts";
import { packTransfer, requireToken, transfer } from "./transfer.ts";
import { verify } from "./verify.ts";

export function nftService(deps: NftDeps): ServiceImpl<typeof NftService> {
  const { store, tokens } = deps;
  const findToken = async (tokenId: string, principal: Principal): Promise<Token> => {
    const { record: token, isIntact } = requireToken(await tokens.find({ tokenId }, { principal }), tokenId);
    // A damaged token's owner is uncertain, so only principals that see all records may read it.
    if (!isIntact && principal.owner !== undefined) throw new RecordDamagedError(`token ${tokenId}`);
    return token;
  };
  return {
    mint: (req, context) => mint(deps, req, readCaller(context)),
    transfer: (req, context) => transfer(deps, req, readCaller(context)),
    verify: async (req, context) => {
      const fault = await verify(deps, req, readPrincipal(context));
      return { valid: fault === undefined, reason: fault ?? "" };
    },
    getToken: async ({ tokenId }, context) => {
      const token = await findToken(tokenId, readPrincipal(context));
      const { name, description, artworkUri, mintedAt, transferCount: _, minter: __, ...shown } = token;
      return {
        ...shown,
        metadata: { name, description, artworkUri },
        algorithm: creatorAlgorithm,
        creatorPublicKeyPem: encodePublicKeyPem(creatorAlgorithm, token.creatorPublicKey),
        mintedAt: timestampFromDate(mintedAt),
      };
    },
    listTokens: async ({ owner: given, ...fields }, context) => {
      const filters = { currentOwner: given.toLowerCase() };
      const { rows, ...page } = await readList(tokens, fields, {
        principal: readPrincipal(context),
        filters,
      });
      const listed = rows.map(({ record: { tokenId, name, currentOwner }, isIntact }) =>
        isIntact ? { tokenId, name, currentOwner } : { tokenId, damaged: true },
      );
      return { ...page, tokens: listed };
    },
    getHistory: async ({ tokenId, ...fields }, context) => {
      const token = await findToken(tokenId, readPrincipal(context));
      const query = { filters: { tokenId } };
      const request = readPage(fields, tokens.transfers.nameList(query));
      const { rows, nextPageToken } = await tokens.transfers.list(request, query);
      const transfers = rows.map(tokens.transfers.requireIntact);
      const isWhole = transfers.every(({ index }, i) => index === request.after + i + 1);
      const isShort = nextPageToken === "" && request.after + rows.length < token.transferCount;
      if (!isWhole || isShort) throw new RecordDamagedError(`history of token ${tokenId}`);
      const history = transfers.map(packTransfer);
      return { history, nextPageToken, totalSize: token.transferCount };
    },
    getHealth: () => readHealth(store, async () => ({ tokenCount: await tokens.count() })),
  };
}
