/** A page's heading and introduction. */
import type { ComponentChildren } from "preact";

interface LeadProps {
  readonly title: ComponentChildren;
  readonly children: ComponentChildren;
}

export function Lead({ title, children }: LeadProps) {
  return (
    <header class="lead">
      <h1 tabIndex={-1}>{title}</h1>
      <p>{children}</p>
    </header>
  );
}
