/** The steps of the chain of blocks: the browser keeps a copy of the chain and checks every block itself. */
import {
  type Block,
  BlockchainService,
  type WatchBlocksResponse,
} from "#gen/blockchain/blockchain_service_pb.ts";
import { loadSigner } from "../../algorithms.ts";
import type { Caller } from "../../caller.ts";
import { Failure } from "../../failure.ts";
import { fromHex } from "../../hex.ts";
import { deriveAddress, makeSigningKey } from "../../signing-key.ts";
import { formatNumber, toUtf8 } from "../../values.ts";
import { type Arrivals, createArrivals } from "./arrivals.ts";
import {
  type CheckedBlock,
  checkBlock,
  checkBlocks,
  faultWords,
  hashBlock,
  validatorAlgorithm,
} from "./blocks.ts";
import { type Forgery, forgeBlocks } from "./forge.ts";

const { registerNode, addBlock, getChain, listValidators, verifyChain } = BlockchainService.method;
/** How many earlier blocks the page shows when the stream starts. */
const earlierBlocks = 2;
const arrivalTimeoutMs = 10_000;

/** The browser's copy of the chain. */
export interface ChainCopy {
  /** Public keys by address; undefined for a validator of which only the address is known. */
  readonly validators: Map<string, Uint8Array | undefined>;
  readonly arrivals: Arrivals;
  blocks: readonly CheckedBlock[];
}

export function createChainCopy(): ChainCopy {
  return { validators: new Map(), arrivals: createArrivals(), blocks: [] };
}

export async function registerValidator({ call }: Caller, { validators }: ChainCopy, name: string) {
  const { validatorAddress, publicKey } = await call(registerNode, { name });
  const isAddressEqual = (await deriveAddress(publicKey)) === validatorAddress;
  // If the address did not match the key, another key could sign in the validator's name.
  if (isAddressEqual) validators.set(validatorAddress, publicKey);
  return { validatorAddress, publicKey, isAddressEqual };
}

/** Reads the validators, and finds the first block to watch. */
export async function prepareWatch({ call }: Caller, copy: ChainCopy) {
  const { length } = await call(getChain, { pageSize: 1 });
  const { validators: listed } = await call(listValidators, {});
  for (const { validatorAddress, publicKey } of listed)
    if ((await deriveAddress(publicKey)) === validatorAddress)
      copy.validators.set(validatorAddress, publicKey);
  copy.blocks = [];
  copy.arrivals.reset();
  return { length, fromIndex: Math.max(0, length - earlierBlocks) };
}

/** Checks a block of the stream, and adds it to the copy. @param before the blocks that the stream brought earlier */
export async function receiveBlock(
  copy: ChainCopy,
  message: Pick<WatchBlocksResponse, "block">,
  before: readonly CheckedBlock[],
): Promise<CheckedBlock> {
  const block = requireBlock(message.block);
  const { validators, arrivals } = copy;
  // The page knows only the address of a validator that registered in the meantime.
  if (!validators.has(block.validatorAddress)) validators.set(block.validatorAddress, undefined);
  const checked = await checkBlock(block, before.at(-1), validators);
  copy.blocks = [...before, checked];
  arrivals.note(block.index);
  return checked;
}

/** Adds blocks, checks the server's answers, and waits until the stream delivers the blocks. */
export async function addBlocks(
  { call }: Caller,
  { arrivals }: ChainCopy,
  { validatorAddress, publicKey }: { readonly validatorAddress: string; readonly publicKey: Uint8Array },
  entries: readonly string[],
  timeoutMs = arrivalTimeoutMs,
) {
  const signer = await loadSigner(validatorAlgorithm);
  const added = [];
  for (const entry of entries) {
    const answer = await call(addBlock, { data: toUtf8(entry), validatorAddress });
    const block = requireBlock(answer.block);
    const isHashed = (await hashBlock(block)) === block.blockHash;
    const isSigned = signer.verify(block.signature, fromHex(block.blockHash), publicKey);
    added.push({ block, isHashed, isSigned });
  }
  if (await arrivals.reach(added.at(-1)?.block.index ?? 0, timeoutMs)) return added;
  throw new Failure("STREAM_SILENT", "UNAVAILABLE", "The stream did not bring the blocks. Watch again.");
}

/** Has the server verify its chain, and verifies the copy here. */
export async function verifyChains({ call }: Caller, { blocks, validators }: ChainCopy) {
  const server = await call(verifyChain, {});
  const checked = await checkBlocks(takeBlocks(blocks), validators);
  const signatures = checked.map(({ signature }) => signature);
  const validSignatures = signatures.filter((signature) => signature === "valid").length;
  const areSigned = validSignatures > 0 && !signatures.includes("not valid");
  return { server, checked, validSignatures, areSigned };
}

/** Tampers with a copy of the copy, and checks it; the server's chain stays unchanged. */
export async function tamperWithCopy({ call }: Caller, { blocks, validators }: ChainCopy, forgery: Forgery) {
  const forged = await forgeBlocks(takeBlocks(blocks), forgery);
  const checked = await checkBlocks(forged, validators);
  return { index: forgery.index, checked, server: await call(verifyChain, {}) };
}

/** Adds a block in the name of a key that does not belong to a validator. */
export async function addAsStranger({ callRefused }: Caller, data: string): Promise<Failure> {
  const { publicKey } = await makeSigningKey(validatorAlgorithm);
  return callRefused(addBlock, { data: toUtf8(data), validatorAddress: await deriveAddress(publicKey) });
}

export function areSound(blocks: readonly CheckedBlock[]): boolean {
  return blocks.every(({ holds }) => holds);
}

export function formatBlocks(count: number): string {
  return `${formatNumber(count)} ${count === 1 ? "block" : "blocks"}`;
}

export function sayTampering(
  index: number,
  checked: readonly CheckedBlock[],
  server: { readonly valid: boolean },
): string {
  const bad = checked.filter(({ holds }) => !holds);
  const [first] = bad;
  if (first === undefined) return "The copy is still valid: nothing in it was changed.";
  const rest = bad.length === 1 ? "" : ` and the ${formatNumber(bad.length - 1)} after it`;
  const says = server.valid ? "The server's chain holds." : "The server's chain does not hold, either.";
  const number = formatNumber(first.block.index);
  const why = first.fault === undefined ? "" : ` Block ${number}: ${faultWords[first.fault]}.`;
  return `You changed block ${formatNumber(index)}: in your copy, block ${number}${rest} turned red.${why} ${says}`;
}

function requireBlock(block: Block | undefined): Block {
  if (block === undefined) throw new Error("the server sent a message without a block");
  return block;
}

function takeBlocks(checked: readonly CheckedBlock[]): readonly Block[] {
  return checked.map(({ block }) => block);
}
