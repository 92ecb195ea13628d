import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type TokenTransferSchema,
  type TransferRequest,
  TransferResponseSchema,
} from "#gen/nft/nft_service_pb.ts";
import type { Reader } from "../../database/database.ts";
import { refuse } from "../../errors.ts";
import type { CallerInput } from "../../identity/principal.ts";
import { messageCodec } from "../../records/idempotency.ts";
import { requireIntact, type Stored } from "../../records/table-declaration.ts";
import type { NftDeps } from "./mint.ts";
import type { Token, Transfer } from "./store.ts";
import { transferQuota } from "./tables.ts";

/**
 * Transfers a token to a new owner.
 *
 * @throws TOKEN_NOT_FOUND, OWNER_MISMATCH, RECORD_DAMAGED, IDEMPOTENCY_KEY_REUSED, QUOTA_EXCEEDED
 */
export function transfer(
  { store, tokens, now }: NftDeps,
  { tokenId, ...req }: TransferRequest,
  { principal, idempotentCall }: CallerInput,
) {
  const [newOwner, fromOwner] = [req.newOwner.toLowerCase(), req.fromOwner.toLowerCase()];
  return store.runIdempotent(idempotentCall, messageCodec(TransferResponseSchema), async (write) => {
    const findToken = async (db?: Reader): Promise<Token> => {
      const found = await tokens.find({ tokenId }, { principal, ...(db && { db }) });
      const token = requireIntact(requireToken(found, tokenId), `token ${tokenId}`);
      if (fromOwner !== "" && fromOwner !== token.currentOwner)
        throw ownerMismatch(tokenId, fromOwner, token.currentOwner);
      return token;
    };
    // The transaction decides. Refuse most calls before it: a failure inside makes the rest of its batch run
    // again.
    await store.requireRoom(transferQuota, (await findToken()).minter);
    return write(async (transaction) => {
      const token = await findToken(transaction.db);
      const done = await tokens.transfer(transaction, token, newOwner, now());
      return { transfer: packTransfer(done), currentOwner: newOwner };
    });
  });
}

/** @throws TOKEN_NOT_FOUND */
export function requireToken(token: Stored<Token> | undefined, tokenId: string): Stored<Token> {
  if (token !== undefined) return token;
  throw refuse("TOKEN_NOT_FOUND", `token ${tokenId} does not exist`, { tokenId });
}

function ownerMismatch(tokenId: string, fromOwner: string, currentOwner: string): Error {
  return refuse(
    "OWNER_MISMATCH",
    `fromOwner: token ${tokenId} belongs to ${currentOwner}, not to ${fromOwner}`,
    {
      tokenId,
      fromOwner,
      currentOwner,
    },
  );
}

export function packTransfer({
  fromAddress,
  toAddress,
  timestamp,
}: Transfer): MessageInitShape<typeof TokenTransferSchema> {
  return { fromAddress, toAddress, timestamp: timestampFromDate(timestamp) };
}
