/** Draws a chain: each block is a box, linked to the previous one; an invalid block is red, with the reason. */
import { fromHex, shortHex } from "../../hex.ts";
import { HashMark } from "../../parts/diagrams/hash-mark.tsx";
import { formatNumber, fromUtf8, shorten, toHexGroups } from "../../values.ts";
import { type CheckedBlock, faultWords } from "./blocks.ts";

const signatures: Readonly<Record<CheckedBlock["signature"], string>> = {
  valid: "signature valid",
  "not valid": "signature not valid",
  unchecked: "signature not checked: this page does not know the validator's key",
  none: "the same in every chain, not signed",
};

interface BlockChainProps {
  readonly label: string;
  readonly blocks: readonly CheckedBlock[];
}

export function BlockChain({ label, blocks }: BlockChainProps) {
  return (
    <ol class="blocks" aria-label={label}>
      {blocks.map((checked, at) => {
        const before = blocks[at - 1];
        const isLinked = before === undefined || checked.block.prevHash === before.block.blockHash;
        const link = before === undefined ? "none" : isLinked && before.holds ? "holds" : "broken";
        return (
          <li key={checked.block.index} data-holds={checked.holds} data-link={link}>
            <BlockBox checked={checked} isLinked={isLinked} />
          </li>
        );
      })}
    </ol>
  );
}

interface BlockBoxProps {
  readonly checked: CheckedBlock;
  /** Whether it names the hash of the block before it. */
  readonly isLinked: boolean;
}

function BlockBox({ checked, isLinked }: BlockBoxProps) {
  const { block, computedHash, fault, holds, isAnchor, signature } = checked;
  return (
    <>
      <p class="bar">
        <strong>Block {formatNumber(block.index)}</strong>
        <strong class="verdict">{holds ? "holds" : (fault ?? "after a bad block")}</strong>
      </p>
      <p class="said">{decodeText(block.data)}</p>
      <dl>
        <dt>before</dt>
        <dd>
          <HashMark bytes={fromHex(block.prevHash)} isGood={isLinked} />
          <code>{block.prevHash.slice(0, 8)}</code>
        </dd>
        <dt>hash</dt>
        <dd>
          <HashMark bytes={fromHex(block.blockHash)} isGood={fault !== "HASH"} />
          <code>{block.blockHash.slice(0, 8)}</code>
        </dd>
        {computedHash !== block.blockHash && (
          <>
            <dt>should be</dt>
            <dd>
              <HashMark bytes={fromHex(computedHash)} isGood />
              <code>{computedHash.slice(0, 8)}</code>
            </dd>
          </>
        )}
        {signature !== "none" && (
          <>
            <dt>by</dt>
            <dd>
              <code>{shortHex(block.validatorAddress)}</code>
            </dd>
          </>
        )}
      </dl>
      <p class="hint">
        {holds ? `${signatures[signature]}${isAnchor ? "; earlier blocks are not shown" : ""}` : ""}
        {fault !== undefined && `It is not valid: ${faultWords[fault]}.`}
        {fault === undefined && !holds && "It is valid itself, but it follows a block that is not."}
      </p>
    </>
  );
}

function decodeText(data: Uint8Array): string {
  try {
    return shorten(fromUtf8(data), 80);
  } catch {
    return shorten(toHexGroups(data), 80);
  }
}
