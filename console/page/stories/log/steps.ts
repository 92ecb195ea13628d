/** The steps of a verifiable log: the browser reads its head, follows a proof, and breaks it. */
import { BlockchainService } from "#gen/blockchain/blockchain_service_pb.ts";
import { LogService } from "#gen/tlog/log_service_pb.ts";
import { type Caller, withoutToken } from "../../caller.ts";
import { Failure } from "../../failure.ts";
import { areEqual, toUtf8 } from "../../values.ts";
import { type Checkpoint, readCheckpoint } from "./checkpoint.ts";
import { flipBit, followProof, hashLeaf, type Inclusion, maxWholeLeaves, type NodeHash } from "./merkle.ts";

const { listLogs, getCheckpoint, getTile, getInclusionProof } = LogService.method;
const { registerNode, addBlock } = BlockchainService.method;
export const logs = ["blockchain", "audit"] as const;
/** Blocks that the story adds, so that a new log has something to show. */
const addedBlocks = 6;
const hashBytes = 32;
/** The server signs at most one checkpoint in a second. */
const pollMs = 500;
const maxPolls = 20;

/** The head of a log, and the hashes of its leaves if they are few. */
export interface LogHead {
  readonly log: string;
  readonly checkpoint: Checkpoint;
  readonly leafHashes: readonly Uint8Array[];
}

/** A proof, what the browser computed from it, and whether it leads to the root of the checkpoint. */
export interface Proved {
  readonly inclusion: Inclusion;
  readonly nodes: readonly NodeHash[];
  readonly isInTree: boolean;
}

/** Adds blocks, and waits for a checkpoint that covers them. */
export async function growLog(caller: Caller, pauseMs = pollMs) {
  const { validatorAddress } = await caller.call(registerNode, { name: "Log" });
  let lastIndex = 0;
  for (let at = 1; at <= addedBlocks; at += 1) {
    const { block } = await caller.call(addBlock, { data: toUtf8(`Entry ${at}`), validatorAddress });
    lastIndex = block?.index ?? 0;
  }
  for (let polls = 0; polls < maxPolls; polls += 1) {
    const { size } = await fetchCheckpoint(caller, "blockchain");
    if (size > lastIndex) return { count: addedBlocks, size };
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  throw new Failure("CHECKPOINT_LATE", "UNAVAILABLE", "No checkpoint covers the new blocks yet. Try again.");
}

/** Reads the newest checkpoint of a log, and the hashes of the leaves if the tree is small. */
export async function readHead(caller: Caller, log: string): Promise<LogHead> {
  const checkpoint = await fetchCheckpoint(caller, log);
  const { size } = checkpoint;
  if (size < 1) throw new Failure("LOG_EMPTY", "BROWSER", "This log has no entries yet.");
  if (size > maxWholeLeaves) return { log, checkpoint, leafHashes: [] };
  // c2sp.org/tlog-tiles: the partial tile of level 0 has the hashes of the leaves.
  const { tile } = await caller.call(getTile, { log, path: `0/000.p/${size}` }, withoutToken);
  const bytes = tile?.data ?? new Uint8Array();
  const leafHashes = Array.from({ length: size }, (_none, at) =>
    bytes.slice(at * hashBytes, (at + 1) * hashBytes),
  );
  return { log, checkpoint, leafHashes };
}

/** Gets the proof of a leaf, and computes the root from it. */
export async function proveLeaf({ call }: Caller, head: LogHead, leafIndex: number): Promise<Proved> {
  const { log, checkpoint } = head;
  const { size: treeSize } = checkpoint;
  const answer = await call(getInclusionProof, { log, leafIndex, treeSize }, withoutToken);
  // Index and size are those that were asked for, not those of the answer.
  return checkProof(head, { index: leafIndex, size: treeSize, leaf: answer.leaf, hashes: answer.hashes });
}

/** Breaks a proof. @param place 0 for the leaf, or which hash of the proof, counted from 1 */
export function breakProof(head: LogHead, { inclusion }: Proved, place: number): Promise<Proved> {
  return checkProof(head, flipBit(inclusion, Math.min(place, inclusion.hashes.length)));
}

async function checkProof({ checkpoint, leafHashes }: LogHead, inclusion: Inclusion): Promise<Proved> {
  const nodes = await followProof(inclusion);
  const root = nodes.at(-1)?.hash ?? new Uint8Array();
  const known = leafHashes[inclusion.index];
  const isKnownLeaf = known === undefined || areEqual(known, await hashLeaf(inclusion.leaf));
  return { inclusion, nodes, isInTree: areEqual(root, checkpoint.root) && isKnownLeaf };
}

async function fetchCheckpoint({ call }: Caller, log: string): Promise<Checkpoint> {
  const listed = await call(listLogs, {}, withoutToken);
  const { checkpoint } = await call(getCheckpoint, { log }, withoutToken);
  const keys = listed.logs.find((one) => one.log === log)?.verifierKeys ?? [];
  return readCheckpoint(checkpoint?.data ?? new Uint8Array(), keys);
}
