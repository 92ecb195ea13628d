/** Says which side checked what, and what it found. */
import type { Check } from "../checks.ts";

const sides = { server: "Checked by the server", browser: "Checked by your browser" };

export function Checks({ checks }: { readonly checks: readonly Check[] }) {
  return (
    <ul class="checks">
      {checks.map(({ by, claim, holds, found }) => (
        <li key={`${by} ${claim}`} data-holds={holds}>
          <span class="side">{sides[by]}</span>
          <span class="claim">{claim}</span>
          <strong class="found">{found}</strong>
        </li>
      ))}
    </ul>
  );
}
