/** A proposal is signed and executed; before enough have signed, and for a stranger, the server refuses. */
import { reportBrowser, reportServer } from "../../checks.ts";
import { Checks } from "../../parts/checks.tsx";
import { Facts } from "../../parts/facts.tsx";
import { FailureNote } from "../../parts/failure-note.tsx";
import { SignatureSizes } from "../../parts/size-chart.tsx";
import { RefusedStep } from "../../parts/steps.tsx";
import { Step, type StepOf } from "../../step.tsx";
import { SignatureResult } from "./signatures.tsx";
import type { Signer } from "./signers.ts";
import {
  algorithm,
  type executeEarly,
  type executeTwice,
  type signAs,
  type signAsStranger,
  type signTwice,
  threshold,
} from "./steps.ts";

interface SigningProps {
  readonly signers: readonly Signer[];
  readonly hurrying: StepOf<typeof executeEarly>;
  readonly intruding: StepOf<typeof signAsStranger>;
  readonly signing: StepOf<typeof signTwice>;
  readonly joining: StepOf<typeof signAs>;
  readonly executing: StepOf<typeof executeTwice>;
}

export function Signing({ signers, hurrying, intruding, signing, joining, executing }: SigningProps) {
  return (
    <>
      <RefusedStep
        step={hurrying}
        title="Execution without signatures"
        action="Execute without signatures"
        says="The server refuses"
      >
        <p>There are no signatures yet.</p>
      </RefusedStep>
      <Step
        step={intruding}
        title="A stranger signs"
        action="Sign as a stranger"
        outcome={({ asHimself, asGrace }) =>
          `Under his own address: ${asHimself.reason}. Under Grace's address: ${asGrace.reason}.`
        }
        result={({ asHimself, asGrace, isGraces }) => (
          <>
            <FailureNote failure={asHimself} isExpected />
            <FailureNote failure={asGrace} isExpected />
            <Checks
              checks={[
                reportBrowser("his signature, with Grace's public key", isGraces),
                reportServer("his signature, under Grace's address", asGrace.reason !== "SIGNATURE_INVALID"),
              ]}
            />
          </>
        )}
      >
        <p>He has his own key and signs the right hash. First he uses his own address, then that of Grace.</p>
      </Step>
      <Step
        step={signing}
        title="You sign"
        action="Sign in your browser"
        outcome={({ count, again }) =>
          `The proposal has ${count} of ${threshold} signatures. Yours counts once: ${again.reason}.`
        }
        result={({ again, ...signed }) => (
          <>
            <SignatureResult {...signed} signers={signers} />
            <SignatureSizes algorithm={algorithm} bytes={signed.signature.length} />
            <FailureNote failure={again} isExpected />
          </>
        )}
      >
        <p>
          Your browser signs the hash that it computed itself, and sends the signature. Then it sends the
          signature again.
        </p>
      </Step>
      <Step
        step={joining}
        title="Grace signs"
        action="Sign as Grace"
        outcome={({ count }) => `The proposal has ${count} of ${threshold} signatures.`}
        result={(signed) => <SignatureResult {...signed} signers={signers} />}
      >
        <p>Her key never leaves its place. Your browser also verifies her signature, with her public key.</p>
      </Step>
      <Step
        step={executing}
        title="Execute it, once"
        action="Execute twice"
        outcome={({ status, again }) =>
          `The proposal is ${status}. A second time it is refused: ${again.reason}.`
        }
        result={({ status, executedAt, again }) => (
          <>
            <Facts facts={{ Status: status, "Executed at": executedAt?.toISOString() }} />
            <FailureNote failure={again} isExpected />
          </>
        )}
      >
        <p>
          The server verifies all stored signatures again, and executes the proposal. When callers race, one
          of them executes it.
        </p>
      </Step>
    </>
  );
}
