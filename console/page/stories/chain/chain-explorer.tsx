/**
 * The blocks that the stream has delivered. The reader flips a bit in one, and it and all later ones turn
 * red.
 */
import { useEffect, useState } from "preact/hooks";
import { changeByte, formatNumber } from "../../values.ts";
import { BlockChain } from "./block-chain.tsx";
import { type CheckedBlock, checkBlocks, type Validators } from "./blocks.ts";
import { efforts, forgeBlocks } from "./forge.ts";

interface ChainExplorerProps {
  /** Checked by the browser. */
  readonly blocks: readonly CheckedBlock[];
  readonly validators: Validators;
}

export function ChainExplorer({ blocks, validators }: ChainExplorerProps) {
  const [flipped, setFlipped] = useState<number>();
  const [checked, setChecked] = useState(blocks);

  useEffect(() => {
    let isCurrent = true;
    void flipAndCheck(blocks, flipped, validators).then((found) => {
      if (isCurrent) setChecked(found);
    });
    return () => {
      isCurrent = false;
    };
  }, [blocks, flipped, validators]);

  const bad = checked.filter(({ holds }) => !holds).length;
  if (blocks.length === 0)
    return (
      <>
        <p class="hint">Watch the chain to see its blocks here.</p>
        <ol class="blocks ghost" aria-hidden="true">
          {[0, 1, 2].map((at) => (
            <li key={at} data-link={at === 0 ? "none" : "holds"}>
              <strong>Block {at}</strong>
            </li>
          ))}
        </ol>
      </>
    );
  return (
    <>
      <BlockChain label="The chain, as it grows" blocks={checked} flipped={flipped} onFlip={setFlipped} />
      <p role="status">
        {bad === 0
          ? "Your browser recomputed every hash and link: all are valid."
          : `${formatNumber(bad)} of ${formatNumber(checked.length)} blocks are not valid.`}
      </p>
    </>
  );
}

/** Flips a bit of a block's content in a copy, and checks the copy. */
async function flipAndCheck(
  blocks: readonly CheckedBlock[],
  index: number | undefined,
  validators: Validators,
): Promise<readonly CheckedBlock[]> {
  const target = blocks.find(({ block }) => block.index === index)?.block;
  if (index === undefined || target === undefined) return blocks;
  const copy = blocks.map(({ block }) => block);
  const data = target.data.length === 0 ? Uint8Array.of(1) : changeByte(target.data, 0).after;
  return checkBlocks(await forgeBlocks(copy, { index, data, effort: efforts[0] }), validators);
}
