/** A part of the page that scrolls by itself, and that the keyboard can reach. */
import type { ComponentChildren } from "preact";

interface ScrollerProps {
  /** Names the part for a reader who cannot see it. */
  readonly label: string;
  readonly class: string;
  readonly children: ComponentChildren;
}

export function Scroller({ label, class: className, children }: ScrollerProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a reader without a mouse scrolls with the keyboard
    <section class={className} aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}
