import type { MessageInitShape } from "@bufbuild/protobuf";
import { type AddBlockRequest, AddBlockResponseSchema } from "#gen/blockchain/blockchain_service_pb.ts";
import type { SecretKey } from "../../crypto/provider.ts";
import { refuse } from "../../errors.ts";
import type { CallerInput } from "../../identity/principal.ts";
import { IdempotencyConflictError, type IdempotentCall, messageCodec } from "../../records/idempotency.ts";
import { describeSealedKey } from "../../records/table-declaration.ts";
import type { OpenKeys } from "../../secrets/sealed-keys.ts";
import type { WriteTransaction } from "../../store/write-transaction.ts";
import { type Block, type BlockContent, hashBlock, packBlock, validatorAlgorithm } from "./block.ts";
import { blockQuota } from "./block-store.ts";
import type { ChainDeps } from "./register-node.ts";
import { validatorTable } from "./tables.ts";

/** A block waiting to be appended. */
interface Waiting {
  readonly data: Uint8Array;
  readonly validatorAddress: string;
  readonly owner: string;
  readonly secretKey: SecretKey;
  readonly idempotentCall: IdempotentCall | undefined;
}

type Answer = MessageInitShape<typeof AddBlockResponseSchema>;
const codec = messageCodec(AddBlockResponseSchema);

/**
 * Creates the function that appends blocks.
 *
 * Concurrent blocks share one write transaction, because only the transaction knows each block's predecessor.
 * Hashes are computed in order, signatures in parallel. The function throws VALIDATOR_MISSING,
 * VALIDATOR_NOT_FOUND, RECORD_DAMAGED, IDEMPOTENCY_KEY_REUSED or QUOTA_EXCEEDED.
 */
export function createAddBlock(deps: ChainDeps, keys: OpenKeys) {
  const { store, chain } = deps;
  const append = store.batch((transaction, waiting: readonly Waiting[]) =>
    appendAll(deps, transaction, waiting),
  );
  return async (req: AddBlockRequest, { principal, idempotentCall }: CallerInput): Promise<Answer> => {
    const { data } = req;
    const validatorAddress = req.validatorAddress.toLowerCase();
    const validator = await chain.findValidator(validatorAddress, principal);
    if (validator === undefined) throw validatorNotFound(validatorAddress);
    const { address, owner } = validator;
    const before = await store.findAnswer(idempotentCall, codec);
    if (before !== undefined) return before;
    // Not checked again in the transaction: concurrent blocks share it, and exceeding the quota by a few is
    // harmless.
    await store.requireRoom(blockQuota, owner);
    return keys.withKey(describeSealedKey(validatorTable, validatorAlgorithm, validator), (secretKey) =>
      append({ data, validatorAddress: address, owner, secretKey, idempotentCall }),
    );
  };
}

async function appendAll(
  deps: ChainDeps,
  transaction: WriteTransaction,
  waiting: readonly Waiting[],
): Promise<Answer[]> {
  const { chain, now } = deps;
  const head = await chain.readHead(transaction.db);
  const first = findFirst(waiting);
  const answers: (Answer | undefined)[] = [];
  const placed: { content: BlockContent; owner: string; blockHash: string; secretKey: SecretKey }[] = [];
  let { headHash: prevHash } = head;
  for (const [i, { data, validatorAddress, owner, secretKey, idempotentCall }] of waiting.entries()) {
    const before = await transaction.findAnswer(idempotentCall, codec);
    answers.push(before);
    if (before !== undefined || first[i] !== i) continue;
    const content = {
      index: head.length + placed.length,
      prevHash,
      data,
      timestamp: now(),
      validatorAddress,
    };
    prevHash = hashBlock(content);
    placed.push({ content, owner, blockHash: prevHash, secretKey });
  }
  const blocks = await Promise.all(
    placed.map(async ({ content, blockHash, secretKey }): Promise<Block> => {
      // The transaction waits for this signature, and all writers wait for the transaction.
      const signature = await deps.provider.system.sign(secretKey, Buffer.from(blockHash, "hex"));
      return { ...content, blockHash, signature };
    }),
  );
  await chain.append(transaction, head, blocks);
  for (const [owner, added] of Map.groupBy(placed, (block) => block.owner))
    await chain.countBlocks(transaction, owner, added.length);
  const fresh = blocks.values();
  for (const [i, { idempotentCall }] of waiting.entries()) {
    if (answers[i] !== undefined || first[i] !== i) continue;
    const answer = { block: packBlock(fresh.next().value as Block) };
    answers[i] = answer;
    await transaction.storeAnswer(idempotentCall, codec, answer);
  }
  // A retry follows the first call, whose answer is ready.
  return waiting.map((_, i) => answers[first[i] ?? i] as Answer);
}

/**
 * Returns, for each call, the index of the first call with the same idempotency key, since none has an answer
 * yet.
 *
 * @throws IdempotencyConflictError
 */
function findFirst(waiting: readonly Waiting[]): number[] {
  const known = new Map<string, { readonly position: number; readonly call: IdempotentCall }>();
  return waiting.map(({ idempotentCall: call }, position) => {
    if (call === undefined) return position;
    // A key contains no line breaks.
    const name = `${call.idempotencyKey}\n${call.userId}`;
    const first = known.getOrInsert(name, { position, call });
    if (first.call.requestHash !== call.requestHash) throw new IdempotencyConflictError(call.idempotencyKey);
    return first.position;
  });
}

function validatorNotFound(validatorAddress: string): Error {
  return validatorAddress === ""
    ? refuse("VALIDATOR_MISSING", "the chain has no validator; register one with RegisterNode")
    : refuse("VALIDATOR_NOT_FOUND", `validator ${validatorAddress} does not exist`, { validatorAddress });
}
