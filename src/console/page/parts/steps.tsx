/** Steps that recur: a call that the server should refuse, and a changed byte that both sides should notice. */
import { reportBoth, sayInvalid, type Verdicts } from "../checks.ts";
import type { Failure } from "../failure.ts";
import { Step, type StepFrameProps } from "../step.tsx";
import type { Change } from "../values.ts";
import { ByteChange } from "./bytes-view.tsx";
import { Checks } from "./checks.tsx";
import { FailureNote } from "./failure-note.tsx";

interface RefusedStepProps extends StepFrameProps<Failure> {
  /** Says who refuses what; the reason follows. */
  readonly says?: string;
}

/** A step with one call that the server should refuse. */
export function RefusedStep({ says = "The server refuses the call", ...frame }: RefusedStepProps) {
  return (
    <Step
      {...frame}
      outcome={({ reason }) => `${says}: ${reason}.`}
      result={(failure) => <FailureNote failure={failure} isExpected />}
    />
  );
}

/** A changed byte, and what both sides found after the change. */
export interface Tampering {
  readonly change: Change;
  readonly verdicts: Verdicts;
}

interface TamperStepProps<T extends Tampering> extends StepFrameProps<T> {
  /** The claim that both sides checked. */
  readonly claim: string;
  /** The sentence if neither side finds it valid. */
  readonly says: (value: T) => string;
}

/** A step that changes a byte, and has both sides verify the result. */
export function TamperStep<T extends Tampering>({ claim, says, ...frame }: TamperStepProps<T>) {
  return (
    <Step
      {...frame}
      outcome={(value) => sayInvalid(value.verdicts, says(value))}
      result={({ change, verdicts }) => (
        <>
          <ByteChange {...change} />
          <Checks checks={reportBoth(claim, verdicts)} />
        </>
      )}
    />
  );
}
