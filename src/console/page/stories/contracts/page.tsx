/** A signed contract, and a message that is signed with both a classical and a post-quantum algorithm. */
import { DappService } from "#gen/dapp/dapp_service_pb.ts";
import { browserLibrary } from "../../algorithms.ts";
import { planCall } from "../../calls.ts";
import { sayExpected } from "../../checks.ts";
import { type FormState, useForm } from "../../form.ts";
import { Bytes } from "../../parts/bytes-view.tsx";
import { Checks } from "../../parts/checks.tsx";
import { Evidence } from "../../parts/diagrams/evidence.tsx";
import { Scene } from "../../parts/diagrams/scene.tsx";
import { SignatureGates } from "../../parts/diagrams/signature-gates.tsx";
import { Choice, TextField } from "../../parts/fields.tsx";
import { SizeChart } from "../../parts/size-chart.tsx";
import { RefusedStep } from "../../parts/steps.tsx";
import { Step, type StepOf, useStep } from "../../step.tsx";
import { Story } from "../../story.tsx";
import { formatBytes, toUtf8 } from "../../values.ts";
import { BrokenHalfResult } from "./broken-half.tsx";
import { Code } from "./code.tsx";
import { Composite } from "./composite.tsx";
import { curveLibrary } from "./dual.ts";
import { drawGates } from "./gates.ts";
import {
  algorithm,
  areBothHalvesValid,
  breakComposite,
  breakHalf,
  cutSignature,
  halves,
  mirrorSignature,
  reportHalves,
  type SignedMessage,
  sayBroken,
  signWithBoth,
  stripComposite,
  verifyCompositeHalves,
  verifyHalves,
} from "./steps.ts";

export function Page() {
  const form = useForm({ text: "Release the escrow" });
  const { text } = form.values;
  const signing = useStep((caller) => signWithBoth(caller, text));
  const cutting = useStep(cutSignature, [signing]);
  const pair = useForm<"half">({ half: "ECDSA" });
  const joined = useForm<"half">({ half: algorithm });
  const verifying = useStep(verifyHalves, [signing]);
  const breaking = useStep((caller, message) => breakHalf(caller, message, pair.values.half), [signing]);
  const mirroring = useStep(mirrorSignature, [signing]);
  const composing = useStep(verifyCompositeHalves, [signing]);
  const breakingComposite = useStep(
    (caller, message) => breakComposite(caller, message, joined.values.half),
    [signing],
  );
  const stripping = useStep(stripComposite, [signing]);
  const gates = { verifying, breaking, mirroring, composing, breakingComposite, stripping };

  return (
    <Story
      title="Contracts, signed twice"
      lead="Code is hashed and signed, so that all parties see the same contract. A message is signed with two algorithms: ECDSA, which has been tested for decades, and ML-DSA, which resists quantum computers. A forger must break both."
    >
      <Scene title="Two signatures, valid only together">
        <SignatureGates label="Attempts" gates={drawGates(gates)} />
      </Scene>
      <Code />
      <Step
        step={signing}
        title="Sign a message twice"
        action="Sign"
        plan={planCall(DappService.method.dualSign, { data: toUtf8(text) })}
        fields={<TextField label="Message" {...form.bind("text")} />}
        outcome={({ signed }) =>
          `ECDSA made ${formatBytes(signed.ecdsaSignature.length)}, ${algorithm} ${formatBytes(signed.mldsaSignature.length)}.`
        }
        result={(message) => <TwoSignatures {...message} />}
      >
        <p>
          The same bytes, with secp256r1 and SHA-256, and with {algorithm}: each with a key pair generated for
          this call. In addition to the two signatures, the server creates one composite signature.
        </p>
      </Step>
      <HalfByHalf {...gates} form={pair} />
      <Composite {...gates} form={joined} />
      <RefusedStep step={cutting} title="Cut a signature short" action="Cut and verify">
        <p>Bytes that cannot be a signature are an error of the caller, not an invalid signature.</p>
      </RefusedStep>
    </Story>
  );
}

function TwoSignatures({ data, signed }: SignedMessage) {
  return (
    <>
      <Evidence label="Message and signatures">
        <Bytes label="Message" value={data} />
        <Bytes label="ECDSA signature" value={signed.ecdsaSignature} />
        <Bytes label={`${algorithm} signature`} value={signed.mldsaSignature} />
      </Evidence>
      <div class="pair">
        <SizeChart
          title="Signature, bytes"
          rows={[
            { label: "ECDSA, DER", bytes: signed.ecdsaSignature.length, isClassical: true },
            { label: algorithm, bytes: signed.mldsaSignature.length },
            { label: "Composite", bytes: signed.compositeSignature.length },
          ]}
        />
        <SizeChart
          title="Public key, bytes"
          rows={[
            { label: "ECDSA P-256", bytes: signed.ecdsaPublicKey.length, isClassical: true },
            { label: algorithm, bytes: signed.mldsaPublicKey.length },
            { label: "Composite", bytes: signed.compositePublicKey.length },
          ]}
        />
      </div>
    </>
  );
}

interface HalfByHalfProps {
  readonly form: FormState<"half">;
  readonly verifying: StepOf<typeof verifyHalves>;
  readonly breaking: StepOf<typeof breakHalf>;
  readonly mirroring: StepOf<typeof mirrorSignature>;
}

/** The two signatures, each by itself. */
function HalfByHalf({ form, verifying, breaking, mirroring }: HalfByHalfProps) {
  return (
    <>
      <Step
        step={verifying}
        title="Verify each signature, on both sides"
        action="Verify"
        outcome={(verdicts) =>
          sayExpected(
            areBothHalvesValid(verdicts),
            "Both sides find both signatures valid.",
            "The sides do not find both valid",
          )
        }
        result={(verdicts) => (
          <>
            <Checks checks={reportHalves(verdicts)} />
            <p class="hint">
              Your browser verifies ECDSA with {curveLibrary}, {algorithm} with {browserLibrary}.
            </p>
          </>
        )}
      >
        <p>Each half counts by itself; the message counts as signed only if both are valid.</p>
      </Step>
      <Step
        step={breaking}
        title="Break one half"
        action="Break and verify"
        fields={<Choice label="Half to break" {...form.bind("half")} options={halves} />}
        outcome={sayBroken}
        result={(broken) => <BrokenHalfResult {...broken} />}
      >
        <p>
          One bit of the last byte of one signature changes. The other half remains valid, but that is not
          enough. If one algorithm is broken in the future, the other one still protects the message.
        </p>
      </Step>
      <Step
        step={mirroring}
        title="Another ECDSA signature, without the key"
        action="Mirror and verify"
        outcome={(verdicts) =>
          sayExpected(
            areBothHalvesValid(verdicts),
            "The signature has other bytes, and both sides find it valid.",
            "The mirrored signature is not valid for both sides",
          )
        }
        result={({ original, mirrored, ...verdicts }) => (
          <>
            <Bytes label="As the server created it: r and s" value={original} />
            <Bytes label="Mirrored: r and n − s" value={mirrored} />
            <Checks checks={reportHalves(verdicts)} />
          </>
        )}
      >
        <p>
          Anyone can replace s with n − s, where n is the order of the curve. This does not forge a message,
          but changes the bytes of the signature. Do not use these bytes, or their hash, as an identifier.
        </p>
      </Step>
    </>
  );
}
