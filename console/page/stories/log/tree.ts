/** Lays out a Merkle tree with the browser's result for each node. */
import { areEqual } from "../../values.ts";
import type { Checkpoint } from "./checkpoint.ts";
import { type Inclusion, listEnds, type NodeHash, type TreeNode } from "./merkle.ts";

/** A log's state, with its leaf hashes if there are few. */
export interface LogHead {
  readonly log: string;
  readonly checkpoint: Checkpoint;
  readonly leafHashes: readonly Uint8Array[];
}

/** A proof, the browser's computed hashes, and whether it leads to the checkpoint's root. */
export interface Proved {
  readonly inclusion: Inclusion;
  readonly nodes: readonly NodeHash[];
  readonly isInTree: boolean;
}

/** The browser's result for a node. "wrong" is a hash that results from a flipped bit. */
type NodeState = "plain" | "computed" | "given" | "wrong";

/** A node's position in image units. */
export interface PlacedNode {
  readonly node: TreeNode;
  readonly x: number;
  readonly y: number;
  readonly state: NodeState;
}

/** A line from a node to its parent. */
interface Branch {
  readonly from: PlacedNode;
  readonly to: PlacedNode;
}

export interface TreePicture {
  readonly width: number;
  readonly height: number;
  readonly nodes: readonly PlacedNode[];
  readonly branches: readonly Branch[];
  /** Leaves and folded nodes, left to right. */
  readonly ends: readonly PlacedNode[];
}

const columnWidth = 44;
const rowHeight = 46;
const top = 16;

/**
 * @param genuine the proof's hashes
 * @param shown the hashes to show, some of which may be wrong
 */
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
      // All ends are in one row, whatever their depth.
      y: top + (children.length > 0 ? level : depth) * rowHeight,
      state: isWrong ? "wrong" : (found?.source ?? "plain"),
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

/** Describes the proof, for readers who do not see the tree. */
export function describeProof(nodes: readonly NodeHash[], isInTree: boolean): string {
  const given = nodes.filter(({ source }) => source === "given");
  const [leaf] = nodes;
  if (leaf === undefined) return "No leaf is selected.";
  const list = new Intl.ListFormat("en").format(given.map(nameRange));
  const start = `The hash of ${nameRange(leaf)} is computed here`;
  const middle = given.length > 0 ? `, then combined with the given hashes of ${list}` : "";
  return `${start}${middle}. The result is ${isInTree ? "" : "not "}the checkpoint's root.`;
}
