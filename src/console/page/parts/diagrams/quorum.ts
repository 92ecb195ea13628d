/** What a signer of a quorum has done. */

export interface Ballot {
  readonly name: string;
  /** Where the signer's key is. */
  readonly place: string;
  readonly state: "signed" | "open" | "refused";
  /** Why, or how it was checked. */
  readonly detail?: string | undefined;
}
