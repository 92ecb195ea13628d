/** A finding as a mark, a colour and a word, so that none of them is essential. */
import type { ComponentChildren } from "preact";

interface VerdictProps {
  readonly holds: boolean;
  readonly children: ComponentChildren;
}

export function Verdict({ holds, children }: VerdictProps) {
  return (
    <strong class="verdict" data-holds={holds}>
      {children}
    </strong>
  );
}
