/** Bytes that prove what a step says, folded, so that the page is short for readers who do not want them. */
import type { ComponentChildren } from "preact";

interface EvidenceProps {
  /** Its content: "Packet, 48 bytes". */
  readonly label: string;
  readonly children: ComponentChildren;
}

export function Evidence({ label, children }: EvidenceProps) {
  return (
    <details class="evidence">
      <summary>{label}</summary>
      {children}
    </details>
  );
}
