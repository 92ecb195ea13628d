/** A signer of a quorum, and their vote. */

export interface Ballot {
  readonly name: string;
  /** Where the signer's key is. */
  readonly place: string;
  readonly state: "signed" | "open" | "refused";
  /** Why, or how it was checked. */
  readonly detail?: string | undefined;
}
