/** Says which side checked what, and what it found. */
import { type Check, reportBoth } from "../checks.ts";

const sides = { server: "Checked by the server", browser: "Checked by your browser" };

export function Checks({ checks }: { readonly checks: readonly Check[] }) {
  return (
    <ul class="checks">
      {checks.map(({ by, claim, holds, found }) => (
        <li key={`${by} ${claim}`} data-holds={holds}>
          <span class="side">{sides[by]}</span>
          <span class="claim">{claim}</span>
          <strong class="found">{found ?? (holds ? "valid" : "not valid")}</strong>
        </li>
      ))}
    </ul>
  );
}

// For stories that have no steps.ts yet.
export type { Check } from "../checks.ts";
export { reportEqual as equality } from "../checks.ts";
export const bothSides = (claim: string, server: boolean, browser: boolean): readonly Check[] =>
  reportBoth(claim, { server, browser });
