/** A composite signature: two in one, which can neither lose a half nor be taken apart. */
import { sayExpected } from "../../checks.ts";
import type { FormState } from "../../form.ts";
import { Bytes } from "../../parts/bytes-view.tsx";
import { Checks } from "../../parts/checks.tsx";
import { Evidence } from "../../parts/diagrams/evidence.tsx";
import { Choice } from "../../parts/fields.tsx";
import { Step, type StepOf } from "../../step.tsx";
import { formatBytes } from "../../values.ts";
import { BrokenHalfResult } from "./broken-half.tsx";
import {
  algorithm,
  areBothHalvesValid,
  type breakComposite,
  halves,
  reportHalves,
  sayBroken,
  type stripComposite,
  type verifyCompositeHalves,
} from "./steps.ts";

interface CompositeProps {
  readonly form: FormState<"half">;
  readonly composing: StepOf<typeof verifyCompositeHalves>;
  readonly breakingComposite: StepOf<typeof breakComposite>;
  readonly stripping: StepOf<typeof stripComposite>;
}

export function Composite({ form, composing, breakingComposite, stripping }: CompositeProps) {
  return (
    <>
      <Step
        step={composing}
        title="Verify the composite"
        action="Verify"
        outcome={({ signature, ...verdicts }) =>
          sayExpected(
            areBothHalvesValid(verdicts),
            `One signature of ${formatBytes(signature.length)}: both sides find both halves valid.`,
            "The sides do not find both halves valid",
          )
        }
        result={({ signature, publicKey, ...verdicts }) => (
          <>
            <Evidence label="Composite signature and key">
              <Bytes label="Composite signature" value={signature} />
              <Bytes label="Composite public key" value={publicKey} />
            </Evidence>
            <Checks checks={reportHalves(verdicts)} />
          </>
        )}
      >
        <p>
          The composite id-MLDSA65-ECDSA-P256-SHA512 is one signature with one key. Both components sign a
          prefix, the name of the composite, and SHA-512 of the message. Your browser assembles these bytes
          itself.
        </p>
      </Step>
      <Step
        step={breakingComposite}
        title="Break one half of the composite"
        action="Break and verify"
        fields={<Choice label="Half of the composite to break" {...form.bind("half")} options={halves} />}
        outcome={sayBroken}
        result={(broken) => <BrokenHalfResult {...broken} />}
      >
        <p>The ML-DSA half is the first part of the signature, the ECDSA half is the last part.</p>
      </Step>
      <Step
        step={stripping}
        title="Take the composite apart"
        action="Strip and verify"
        outcome={({ server, browser }) =>
          sayExpected(
            !server.mldsaValid && !browser.mldsaValid,
            `Neither side accepts the half as an ${algorithm} signature of the message.`,
            "One side accepts the half as a separate signature",
          )
        }
        result={(verdicts) => <Checks checks={reportHalves(verdicts)} />}
      >
        <p>
          Anyone who takes the {algorithm} half out of a composite cannot use it as a separate signature,
          because its signed bytes begin with the name of the composite. This step sends it together with the
          valid ECDSA signature of an earlier step.
        </p>
      </Step>
    </>
  );
}
