/** A scrollable region that is reachable by keyboard. */
import type { ComponentChildren } from "preact";

interface ScrollerProps {
  /** The region's label, for screen readers. */
  readonly label: string;
  readonly class: string;
  readonly children: ComponentChildren;
}

export function Scroller({ label, class: className, children }: ScrollerProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users must be able to scroll it
    <section class={className} aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}
