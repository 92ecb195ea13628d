/** The allowed signers, those who have signed, and how many signatures are missing. A refused signer has a red line. */
/** A signer of a quorum, and their vote. */
export interface Ballot {
  readonly name: string;
  /** Where the signer's key is. */
  readonly place: string;
  readonly state: "signed" | "open" | "refused";
  /** Why, or how it was checked. */
  readonly detail?: string | undefined;
}

interface QuorumProps {
  /** The subject of the signatures. */
  readonly subject: string;
  readonly ballots: readonly Ballot[];
  readonly threshold: number;
}

const states: Readonly<Record<Ballot["state"], string>> = {
  signed: "signed",
  open: "has not signed",
  refused: "refused",
};

export function Quorum({ subject, ballots, threshold }: QuorumProps) {
  const count = ballots.filter(({ state }) => state === "signed").length;
  return (
    <div class="quorum">
      <ul aria-label="Signers">
        {ballots.map(({ name, place, state, detail }) => (
          <li key={name} data-state={state}>
            <span class="signer">
              <strong>{name}</strong> <small>{place}</small>
            </span>
            <span class="wire" aria-hidden="true" />
            <span class="found">
              {states[state]}
              {detail !== undefined && `: ${detail}`}
            </span>
          </li>
        ))}
      </ul>
      <div class="subject" data-reached={count >= threshold}>
        <strong>{subject}</strong>
        <span class="tally" aria-hidden="true">
          {Array.from({ length: threshold }, (_none, at) => (
            // Places of signatures have no identity.
            <span key={`place ${at + 1}`} data-filled={at < count} />
          ))}
        </span>
        <span>
          {count} of {threshold} signatures
        </span>
      </div>
    </div>
  );
}
