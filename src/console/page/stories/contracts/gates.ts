/** The results of each attempt with two signatures, for both sides. */
import type { Gate } from "../../parts/diagrams/signature-gates.tsx";
import type { StepView } from "../../parts/diagrams/step-view.ts";
import { algorithm, type HalfVerdicts } from "./steps.ts";

/** The steps that verify two signatures. */
export interface GateSteps {
  readonly verifying: StepView<HalfVerdicts>;
  readonly breaking: StepView<HalfVerdicts>;
  readonly mirroring: StepView<HalfVerdicts>;
  readonly composing: StepView<HalfVerdicts>;
  readonly breakingComposite: StepView<HalfVerdicts>;
  readonly stripping: StepView<HalfVerdicts>;
}

const titles: Readonly<Record<keyof GateSteps, string>> = {
  verifying: "As they were signed",
  breaking: "One bit of one signature changed",
  mirroring: "ECDSA signature mirrored",
  composing: "Composite of both",
  breakingComposite: "One bit of the composite changed",
  stripping: "A half taken out of the composite",
};

/** Draws the attempts in the order of the steps. */
export function drawGates(steps: GateSteps): readonly Gate[] {
  return Object.entries(titles).map(([name, title]) => {
    // The names are those of the steps: titles has one for each.
    const { value } = steps[name as keyof GateSteps];
    return {
      title,
      halves: [
        { name: "ECDSA", holds: value?.server.ecdsaValid && value.browser.ecdsaValid },
        { name: algorithm, holds: value?.server.mldsaValid && value.browser.mldsaValid },
      ],
    };
  });
}
