/** nft.NftService: unpack, call, pack. */

import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { NftService } from "#gen/nft/nft_service_pb.ts";
import { encodePublicKeyPem } from "../../crypto/key-encoding.ts";
import { RecordDamagedError } from "../../database/store-error.ts";
import { readIdempotentCall, readPrincipal } from "../../identity/principal.ts";
import { listSeenBy, type Principal, systemPrincipal } from "../../records/ownership.ts";
import { requireIntact } from "../../records/table-declaration.ts";
import { readPage } from "../fields.ts";
import { creatorAlgorithm, mint, type NftDeps } from "./mint.ts";
import { type Token, tokenList, transferList } from "./store.ts";
import { transferTable } from "./tables.ts";
import { packTransfer, requireToken, transfer } from "./transfer.ts";
import { verify } from "./verify.ts";

/** The dependencies of the service. */
export interface NftServiceDeps extends NftDeps {}

/** Implements the service. */
export function nftService(deps: NftServiceDeps): ServiceImpl<typeof NftService> {
  const { store, tokens } = deps;
  const findToken = async (tokenId: string, principal: Principal): Promise<Token> => {
    const { record: token, isIntact } = requireToken(await tokens.find({ tokenId }, { principal }), tokenId);
    // The owner of a damaged token is uncertain, so only principals that see all records may read it.
    if (!isIntact && principal.owner !== undefined) throw new RecordDamagedError(`token ${tokenId}`);
    return token;
  };
  return {
    mint: ({ name, description, artworkUri }, context) =>
      mint(
        deps,
        { name, description, artworkUri },
        { principal: readPrincipal(context), idempotentCall: readIdempotentCall(context) },
      ),
    transfer: ({ tokenId, newOwner, fromOwner }, context) =>
      transfer(deps, {
        tokenId,
        newOwner: newOwner.toLowerCase(),
        fromOwner: fromOwner.toLowerCase(),
        principal: readPrincipal(context),
        idempotentCall: readIdempotentCall(context),
      }),
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
      const currentOwner = given.toLowerCase();
      const principal = readPrincipal(context);
      const page = readPage(fields, listSeenBy(principal, tokenList(currentOwner)));
      const { rows, nextPageToken } = await tokens.list(page, principal, { currentOwner });
      const listed = rows.map(({ record: { tokenId, name, currentOwner }, isIntact }) =>
        isIntact ? { tokenId, name, currentOwner } : { tokenId, damaged: true },
      );
      return { tokens: listed, nextPageToken, totalSize: await tokens.count(principal, { currentOwner }) };
    },
    getHistory: async ({ tokenId, ...fields }, context) => {
      const token = await findToken(tokenId, readPrincipal(context));
      const page = await tokens.listTransfers(readPage(fields, transferList(tokenId)), systemPrincipal, {
        tokenId,
      });
      return {
        history: page.rows.map((found) =>
          packTransfer(requireIntact(found, transferTable.describe(found.record))),
        ),
        nextPageToken: page.nextPageToken,
        totalSize: token.transferCount,
      };
    },
    getHealth: async () => {
      const tokenCount = await store.ifReachable(() => tokens.count());
      return tokenCount === undefined ? { serviceStatus: "DOWN" } : { serviceStatus: "UP", tokenCount };
    },
  };
}
