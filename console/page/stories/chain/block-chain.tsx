/**
 * Draws a chain. Each block is a box linked to the previous one; an invalid block is red, with the reason.
 */

import { HashMark } from "../../parts/diagrams/hash-mark.tsx";
import { Verdict } from "../../parts/verdict.tsx";
import { formatNumber, fromHex, fromUtf8, shorten, shortenId, toHexGroups } from "../../values.ts";
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
        const { block, holds } = checked;
        const before = blocks[at - 1];
        const isLinked = before === undefined || block.prevHash === before.block.blockHash;
        const link = before === undefined ? "none" : isLinked && before.holds ? "holds" : "broken";
        return (
          <li key={block.index} data-holds={holds} data-link={link}>
            <BlockBox checked={checked} isLinked={isLinked} />
          </li>
        );
      })}
    </ol>
  );
}

/** The blocks that the stream has delivered. */
export function GrowingChain({ blocks }: Pick<BlockChainProps, "blocks">) {
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
  return <BlockChain label="The chain, as it grows" blocks={blocks} />;
}

interface BlockBoxProps {
  readonly checked: CheckedBlock;
  /** Whether it names the previous block's hash. */
  readonly isLinked: boolean;
}

function BlockBox({ checked, isLinked }: BlockBoxProps) {
  const { block, computedHash, fault, holds, isAnchor, signature } = checked;
  return (
    <>
      <p class="bar">
        <strong>Block {formatNumber(block.index)}</strong>
        <Verdict holds={holds}>{holds ? "holds" : (fault ?? "after a bad block")}</Verdict>
      </p>
      <p class="said">{decodeText(block.data)}</p>
      <dl>
        <Hash name="before" hash={block.prevHash} isGood={isLinked} />
        <Hash name="hash" hash={block.blockHash} isGood={fault !== "HASH"} />
        {computedHash !== block.blockHash && <Hash name="should be" hash={computedHash} isGood />}
        {signature !== "none" && (
          <>
            <dt>by</dt>
            <dd>
              <code>{shortenId(block.validatorAddress)}</code>
            </dd>
          </>
        )}
      </dl>
      <p class="hint">
        {holds ? `${signatures[signature]}${isAnchor ? "; earlier blocks are not shown" : ""}` : ""}
        {fault !== undefined && `It is not valid: ${faultWords[fault]}.`}
        {fault === undefined && !holds && "It is valid itself, but it follows an invalid block."}
      </p>
    </>
  );
}

interface HashProps {
  readonly name: string;
  readonly hash: string;
  readonly isGood: boolean;
}

function Hash({ name, hash, isGood }: HashProps) {
  return (
    <>
      <dt>{name}</dt>
      <dd>
        <HashMark bytes={fromHex(hash)} isGood={isGood} /> <code>{hash.slice(0, 8)}</code>
      </dd>
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
