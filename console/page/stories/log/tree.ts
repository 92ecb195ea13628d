/** Lays out a Merkle tree, with the browser's result for each node. */
import { areEqual } from "../../values.ts";
import type { Checkpoint } from "./checkpoint.ts";
import { type Inclusion, listEnds, type NodeHash, type TreeNode } from "./merkle.ts";

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

/** The browser's result for a node. "wrong" is a hash that results from a flipped bit. */
export type NodeState = "plain" | "computed" | "given" | "wrong";

/** A node in the image, in units of it. */
export interface PlacedNode {
  readonly node: TreeNode;
  readonly x: number;
  readonly y: number;
  readonly state: NodeState;
  readonly hash: Uint8Array | undefined;
}

/** A line from a node to its parent. */
export interface Branch {
  readonly from: PlacedNode;
  readonly to: PlacedNode;
}

export interface TreePicture {
  readonly width: number;
  readonly height: number;
  readonly nodes: readonly PlacedNode[];
  readonly branches: readonly Branch[];
  /** Leaves and folded nodes, from left to right. */
  readonly ends: readonly PlacedNode[];
}

export const columnWidth = 44;
const rowHeight = 46;
const top = 16;

/** @param genuine the hashes of the proof; @param shown those to show, of which some may be wrong */
export function drawTree(
  root: TreeNode,
  genuine: readonly NodeHash[],
  shown: readonly NodeHash[] = genuine,
): TreePicture {
  const ends = listEnds(root);
  const depth = measureDepth(root);
  const nodes: PlacedNode[] = [];
  const branches: Branch[] = [];
  const place = (node: TreeNode, level: number): PlacedNode => {
    const children = node.children?.map((child) => place(child, level + 1)) ?? [];
    const x =
      children.length > 0
        ? children.reduce((sum, child) => sum + child.x, 0) / children.length
        : (ends.indexOf(node) + 0.5) * columnWidth;
    const isSame = (one: NodeHash): boolean => one.start === node.start && one.end === node.end;
    const found = shown.find(isSame);
    const real = genuine.find(isSame);
    const isWrong = found !== undefined && real !== undefined && !areEqual(found.hash, real.hash);
    const placed: PlacedNode = {
      node,
      x,
      // Ends are in one row, whatever their depth.
      y: top + (children.length > 0 ? level : depth) * rowHeight,
      state: isWrong ? "wrong" : (found?.source ?? "plain"),
      hash: found?.hash,
    };
    nodes.push(placed);
    for (const child of children) branches.push({ from: child, to: placed });
    return placed;
  };
  place(root, 0);
  return {
    width: ends.length * columnWidth,
    height: top * 2 + depth * rowHeight,
    nodes,
    branches,
    ends: nodes.filter(({ node }) => node.children === undefined),
  };
}

function measureDepth({ children }: TreeNode): number {
  return children === undefined ? 0 : 1 + Math.max(...children.map(measureDepth));
}

/** "leaf 3", "leaves 4 to 7". */
export function nameRange({ start, end }: Pick<TreeNode, "start" | "end">): string {
  return end - start === 1 ? `leaf ${start}` : `leaves ${start} to ${end - 1}`;
}

/** Says what the proof does, for readers who do not see the tree. */
export function describeProof(nodes: readonly NodeHash[], isInTree: boolean): string {
  const given = nodes.filter(({ source }) => source === "given");
  const [leaf] = nodes;
  if (leaf === undefined) return "No leaf is chosen.";
  const list = new Intl.ListFormat("en").format(given.map(nameRange));
  const start = `The hash of ${nameRange(leaf)} is computed here`;
  const middle = given.length > 0 ? `, then combined with the given hashes of ${list}` : "";
  return `${start}${middle}. The result is ${isInTree ? "the root of the checkpoint" : "not the root of the checkpoint"}.`;
}
