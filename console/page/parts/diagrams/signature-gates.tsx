/** Signatures that count only together: a row for each attempt, with what was found of each half and of both. */

export interface Gate {
  readonly title: string;
  /** The result for each half; undefined before the check. */
  readonly halves: readonly { readonly name: string; readonly holds: boolean | undefined }[];
}

interface SignatureGatesProps {
  readonly label: string;
  readonly gates: readonly Gate[];
}

export function SignatureGates({ label, gates }: SignatureGatesProps) {
  return (
    <ol class="gates" aria-label={label}>
      {gates.map(({ title, halves }) => {
        const isKnown = halves.every(({ holds }) => holds !== undefined);
        const isSigned = halves.every(({ holds }) => holds === true);
        return (
          <li key={title} data-known={isKnown}>
            <p>{title}</p>
            <div class="gate">
              <ul>
                {halves.map(({ name, holds }) => (
                  <li key={name} data-verdict={nameVerdict(holds)}>
                    <span>{name}</span>
                    <span class="found">{holds === undefined ? "" : holds ? "valid" : "not valid"}</span>
                  </li>
                ))}
              </ul>
              <span class="and">and</span>
              <strong class="both" data-verdict={nameVerdict(isKnown ? isSigned : undefined)}>
                {isKnown ? (isSigned ? "signed" : "not signed") : "?"}
              </strong>
            </div>
          </li>
        );
      })}
    </ol>
  );
}

function nameVerdict(holds: boolean | undefined): "none" | "good" | "bad" {
  return holds === undefined ? "none" : holds ? "good" : "bad";
}
