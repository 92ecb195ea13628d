/** The signers of the proposal, and the states that it has had. */
import type { Lifecycle } from "../../parts/diagrams/lifecycle.ts";
import type { Ballot } from "../../parts/diagrams/quorum.ts";
import type { StepView, StepViewOf } from "../../parts/diagrams/step-view.ts";
import type { executeTwice, Proposed, Signed, Signers, signAsStranger } from "./steps.ts";

export const proposalLifecycle: Lifecycle = {
  states: [
    { name: "PENDING", column: 0, row: 0 },
    { name: "EXECUTED", column: 1.9, row: 0 },
    { name: "expired", column: 1.9, row: 0.9 },
  ],
  transitions: [
    { from: "PENDING", to: "EXECUTED", label: "2 of 3 signed" },
    { from: "PENDING", to: "expired", label: "after 1 hour" },
  ],
};

/** The steps that the diagram shows. */
export interface GovernanceSteps {
  readonly gathering: StepView<Signers>;
  readonly proposing: StepView<Proposed>;
  readonly intruding: StepViewOf<typeof signAsStranger>;
  readonly signing: StepView<Signed>;
  readonly joining: StepView<Signed>;
  readonly executing: StepViewOf<typeof executeTwice>;
}

/** The signers as the server counts them, and the stranger once he has tried. */
export function listBallots({ gathering, intruding, signing, joining }: GovernanceSteps): readonly Ballot[] {
  const latest = joining.value ?? signing.value;
  const signers: readonly Pick<Signers["all"][number], "name" | "place" | "address">[] =
    gathering.value?.all ??
    ["You", "Grace", "Alan"].map((name) => ({ name, place: "no key yet", address: name }));
  const ballots = signers.map(({ name, place, address }): Ballot => {
    const hasSigned = latest?.signedBy.includes(address) ?? false;
    const verdicts =
      name === "You" ? signing.value?.verdicts : name === "Grace" ? joining.value?.verdicts : undefined;
    return {
      name,
      place,
      state: hasSigned ? "signed" : "open",
      detail: hasSigned && verdicts ? nameVerdict(verdicts.browser) : undefined,
    };
  });
  const stranger: Ballot = {
    name: "A stranger",
    place: "with his own key",
    state: intruding.value ? "refused" : "open",
    detail: intruding.value && `${intruding.value.asHimself.reason}, ${intruding.value.asGrace.reason}`,
  };
  return [...ballots, stranger];
}

function nameVerdict(isValid: boolean): string {
  return isValid ? "checked by your browser" : "not valid for your browser";
}

/** The states of the proposal so far, in their order. */
export function walkProposal({ proposing, executing }: GovernanceSteps): readonly string[] {
  return [proposing.value && "PENDING", executing.value?.status].filter((state) => state !== undefined);
}
