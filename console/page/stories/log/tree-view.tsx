/** Draws a Merkle tree. The reader selects a leaf, and its path to the root lights up. */
import { HashMark } from "../../parts/diagrams/hash-mark.tsx";
import { Scroller } from "../../parts/scroller.tsx";
import { Verdict } from "../../parts/verdict.tsx";
import { useUniqueId } from "../../unique-id.ts";
import { formatNumber } from "../../values.ts";
import { buildTree } from "./merkle.ts";
import { describeProof, drawTree, type LogHead, nameRange, type PlacedNode, type Proved } from "./tree.ts";

interface TreeViewProps {
  readonly head: LogHead;
  readonly chosen: number;
  readonly proved: Proved | undefined;
  /** The proof with a flipped bit. */
  readonly broken: Proved | undefined;
  readonly onChoose: (leaf: number) => void;
}

const marks = { plain: "", computed: "✓", given: "", wrong: "✕" };

export function TreeView({ head, chosen, proved, broken, onChoose }: TreeViewProps) {
  const id = useUniqueId();
  const { checkpoint } = head;
  const shown = broken ?? proved;
  const picture = drawTree(buildTree(checkpoint.size, chosen), proved?.nodes ?? [], shown?.nodes);
  const root = shown?.nodes.at(-1);
  const columns = { gridTemplateColumns: `repeat(${picture.ends.length}, minmax(0, 1fr))` };
  return (
    <div class="merkle">
      <p class="roots">
        <span>
          signed root <HashMark bytes={checkpoint.root} />
        </span>
        {root && shown && (
          <>
            <Verdict holds={shown.isInTree}>{shown.isInTree ? "equal" : "different"}</Verdict>
            <span>
              computed root <HashMark bytes={root.hash} isGood={shown.isInTree} />
            </span>
          </>
        )}
      </p>
      <Scroller label="The tree" class="merkle-scroll">
        <div style={{ minWidth: `${picture.width * 0.95}px`, maxWidth: `${picture.width * 1.6}px` }}>
          <svg
            role="img"
            viewBox={`0 0 ${picture.width} ${picture.height}`}
            aria-label={`Merkle tree of ${formatNumber(checkpoint.size)} leaves`}
            aria-describedby={id}
          >
            {picture.branches.map(({ from, to }) => (
              <line
                key={`${from.node.start} ${from.node.end}`}
                data-state={to.state === "plain" ? "plain" : from.state}
                x1={from.x}
                y1={from.y}
                x2={to.x}
                y2={to.y}
              />
            ))}
            {picture.nodes.map((placed) => (
              <NodeView key={`${placed.node.start} ${placed.node.end}`} placed={placed} />
            ))}
          </svg>
          <ul class="leaves" aria-label="Leaves" style={columns}>
            {picture.ends.map(({ node: { start, end } }) => (
              <li key={start}>
                <button
                  type="button"
                  aria-pressed={end - start === 1 && start === chosen}
                  onClick={() => onChoose(start)}
                >
                  <span class="unseen">{end - start === 1 ? "Leaf " : "Unfold leaves "}</span>
                  {end - start === 1 ? start : `${start}–${end - 1}`}
                </button>
              </li>
            ))}
          </ul>
        </div>
      </Scroller>
      <p class="unseen" id={id}>
        {shown ? describeProof(shown.nodes, shown.isInTree) : "No leaf is selected yet."}
      </p>
      <p class="legend" aria-hidden="true">
        <span class="key" data-state="computed">
          ✓
        </span>{" "}
        computed here
        <span class="key" data-state="given" /> given by the proof
        <span class="key" data-state="wrong">
          ✕
        </span>{" "}
        wrong
      </p>
    </div>
  );
}

function NodeView({ placed: { node, x, y, state } }: { readonly placed: PlacedNode }) {
  const isFolded = node.children === undefined && node.end - node.start > 1;
  return (
    <g class="node" data-state={state}>
      <title>{nameRange(node)}</title>
      {isFolded ? (
        <polygon points={`${x},${y - 12} ${x + 14},${y + 12} ${x - 14},${y + 12}`} />
      ) : (
        <rect x={x - 12} y={y - 12} width="24" height="24" rx={node.children ? 12 : 3} />
      )}
      <text x={x} y={y + 4.5}>
        {marks[state]}
      </text>
    </g>
  );
}
