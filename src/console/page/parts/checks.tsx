/** Says which side checked what, and what it found. */

export interface Check {
  readonly by: "server" | "browser";
  /** What was looked at: "the signature over the message". */
  readonly claim: string;
  /** Whether it held. */
  readonly holds: boolean;
  /** Says what was found, if "valid" or "not valid" is not the word for it. */
  readonly found?: string;
}

/** A claim that each side checked for itself. */
export function bothSides(claim: string, server: boolean, browser: boolean): readonly Check[] {
  return [
    { by: "server", claim, holds: server },
    { by: "browser", claim, holds: browser },
  ];
}

/** Two things that the browser compared. */
export function equality(claim: string, isEqual: boolean): Check {
  return { by: "browser", claim, holds: isEqual, found: isEqual ? "equal" : "different" };
}

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
