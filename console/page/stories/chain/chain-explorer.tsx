/** The newest blocks as a chain. The reader flips a bit of one, and sees it and all later ones turn red. */
import { useEffect, useState } from "preact/hooks";
import { fromHex } from "../../hex.ts";
import { HashMark } from "../../parts/diagrams/hash-mark.tsx";
import { changeByte, formatNumber } from "../../values.ts";
import { type CheckedBlock, checkBlocks, type Validators } from "./blocks.ts";
import { efforts, forgeBlocks } from "./forge.ts";

interface ChainExplorerProps {
  /** The blocks that the stream has brought, checked by the browser. */
  readonly blocks: readonly CheckedBlock[];
  readonly validators: Validators;
}

const shownBlocks = 6;

const findings: Readonly<Record<NonNullable<CheckedBlock["fault"]>, string>> = {
  INDEX: "a block is missing",
  LINK: "another previous hash",
  HASH: "another hash than it says",
  VALIDATOR: "not a validator's",
  SIGNATURE: "not signed",
};

export function ChainExplorer({ blocks, validators }: ChainExplorerProps) {
  const newest = blocks.slice(-shownBlocks);
  const [flipped, setFlipped] = useState<number>();
  const [checked, setChecked] = useState<readonly CheckedBlock[]>(newest);

  useEffect(() => {
    let isCurrent = true;
    void flipAndCheck(newest, flipped, validators).then((found) => {
      if (isCurrent) setChecked(found);
    });
    return () => {
      isCurrent = false;
    };
  }, [blocks, flipped, validators]);

  const bad = checked.filter(({ holds }) => !holds).length;
  if (newest.length === 0) return <p class="hint">Watch the chain, and its newest blocks appear here.</p>;
  return (
    <>
      <ol class="links" aria-label="Newest blocks">
        {checked.map((one) => (
          <Link
            key={one.block.index}
            checked={one}
            isFlipped={one.block.index === flipped}
            onFlip={setFlipped}
          />
        ))}
      </ol>
      <p role="status">
        {bad === 0
          ? "Your browser recomputed every hash and link: all are valid."
          : `${formatNumber(bad)} of ${formatNumber(checked.length)} blocks are not valid.`}
      </p>
    </>
  );
}

interface LinkProps {
  readonly checked: CheckedBlock;
  readonly isFlipped: boolean;
  readonly onFlip: (index: number | undefined) => void;
}

function Link({ checked: { block, computedHash, fault, holds }, isFlipped, onFlip }: LinkProps) {
  return (
    <li data-holds={holds}>
      <span class="bar">
        <strong>Block {formatNumber(block.index)}</strong>
        <button
          type="button"
          aria-pressed={isFlipped}
          onClick={() => onFlip(isFlipped ? undefined : block.index)}
        >
          {isFlipped ? "Restore" : "Flip a bit"}
          <span class="unseen"> of block {block.index}</span>
        </button>
      </span>
      <span>
        <HashMark bytes={fromHex(computedHash)} isGood={holds} />{" "}
        <span class="found">
          {holds ? "valid" : fault === undefined ? "follows a block that is not valid" : findings[fault]}
        </span>
      </span>
    </li>
  );
}

/** Flips a bit of the content of a block in a copy, and checks the copy. */
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
