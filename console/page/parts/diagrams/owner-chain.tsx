/** Owners of a thing, one after the other, and what was checked of each of them and of each transfer. */
import { HashMark } from "./hash-mark.tsx";
import type { Verdict } from "./sequence.ts";

/** An owner, or something that went from one to another. */
export type OwnerItem = OwnerCard | OwnerLink;

export interface OwnerCard {
  readonly kind: "owner";
  readonly name: string;
  /** Drawn as a pattern. */
  readonly mark?: Uint8Array | undefined;
  readonly detail?: string | undefined;
  readonly verdict?: Verdict | undefined;
  readonly isAttacker?: boolean;
}

export interface OwnerLink {
  readonly kind: "link";
  readonly text: string;
  readonly verdict?: Verdict | undefined;
  readonly isAttack?: boolean;
}

interface OwnerChainProps {
  readonly label: string;
  readonly items: readonly OwnerItem[];
}

export function OwnerChain({ label, items }: OwnerChainProps) {
  return (
    <ol class="owner-chain" aria-label={label}>
      {items.map((item, at) => (
        <li
          // The places of a chain stay.
          key={`${at} ${item.kind}`}
          class={item.kind}
          data-attack={item.kind === "owner" ? (item.isAttacker ?? false) : (item.isAttack ?? false)}
          data-verdict={item.verdict === undefined ? "none" : item.verdict.holds ? "good" : "bad"}
        >
          {item.kind === "owner" ? (
            <>
              {item.mark && <HashMark bytes={item.mark} isGood={!item.isAttacker} />}
              <strong>{item.name}</strong> {item.detail && <code>{item.detail}</code>}
            </>
          ) : (
            <span>{item.text}</span>
          )}
          {item.verdict && <strong class="found">{item.verdict.says}</strong>}
        </li>
      ))}
    </ol>
  );
}
