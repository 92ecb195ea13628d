/** What was found: a mark, a colour and a word, so that none is needed alone. */
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
