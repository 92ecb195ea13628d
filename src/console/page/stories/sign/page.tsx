/** A signature: made by the server, checked on both sides, broken by one byte. */
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { browserLibrary } from "../../algorithms.ts";
import { planCall } from "../../calls.ts";
import { reportBoth, sayValid } from "../../checks.ts";
import { useForm } from "../../form.ts";
import { Bytes } from "../../parts/bytes-view.tsx";
import { Checks } from "../../parts/checks.tsx";
import { Choice, NumberField, TextField } from "../../parts/fields.tsx";
import { PublicKeySizes, SignatureSizes } from "../../parts/size-chart.tsx";
import { RefusedStep, TamperStep } from "../../parts/steps.tsx";
import { Step, type StepState, useStep } from "../../step.tsx";
import { Story } from "../../story.tsx";
import { formatBytes, formatMs, formatNumber, toUtf8 } from "../../values.ts";
import {
  breakSignature,
  changeMessage,
  cutSignature,
  type SignedMessage,
  signMessage,
  verifyOnBothSides,
} from "./steps.ts";

const algorithms = ["ML-DSA-44", "ML-DSA-65", "ML-DSA-87", "SLH-DSA-SHA2-128s", "SLH-DSA-SHA2-128f"];
const claim = "the signature over the message";

export function Page() {
  const form = useForm({ text: "Pay 100 to Ada", algorithm: "ML-DSA-65" });
  const { text, algorithm } = form.values;
  const signing = useStep((caller) => signMessage(caller, form.values));
  const verifying = useStep(verifyOnBothSides, [signing]);

  return (
    <Story
      title="Sign and verify"
      lead="The server generates a key pair for this request, signs with the secret key, and sends the signature and the public key. With these two, anyone can check that the message is unchanged."
    >
      <Step
        step={signing}
        title="Sign a message"
        action="Sign"
        plan={planCall(PqcService.method.signData, { data: toUtf8(text), algorithm })}
        fields={
          <>
            <TextField label="Message" {...form.bind("text")} />
            <Choice label="Algorithm" {...form.bind("algorithm")} options={algorithms} />
          </>
        }
        outcome={({ signature, publicKey }) =>
          `The signature has ${formatBytes(signature.length)}, the public key ${formatBytes(publicKey.length)}.`
        }
        result={(signed) => (
          <>
            <Bytes label="Message" value={signed.data} />
            <Bytes label="Signature" value={signed.signature} />
            <Bytes label="Public key" value={signed.publicKey} publicKeyOf={signed.algorithm} />
            <div class="pair">
              <SignatureSizes algorithm={signed.algorithm} bytes={signed.signature.length} />
              <PublicKeySizes algorithm={signed.algorithm} bytes={signed.publicKey.length} />
            </div>
          </>
        )}
      >
        <p>
          ML-DSA is based on lattices and is fast. SLH-DSA is based only on hash functions. Its keys are tiny,
          and its signatures are large and slow to create.
        </p>
      </Step>
      <Step
        step={verifying}
        title="Verify it, on both sides"
        action="Verify"
        outcome={({ verdicts }) => sayValid(verdicts, "Both sides find the signature valid.")}
        result={({ verdicts, ms }) => (
          <>
            <Checks checks={reportBoth(claim, verdicts)} />
            <p class="hint">
              Your browser took {formatMs(ms)}, with {browserLibrary}.
            </p>
          </>
        )}
      >
        <p>
          A dishonest server could call any signature valid. Therefore your browser also verifies, with its
          own library and without a call.
        </p>
      </Step>
      <Changes signing={signing} />
    </Story>
  );
}

/** Changes after the signing, which both sides detect. */
function Changes({ signing }: { readonly signing: StepState<SignedMessage> }) {
  const form = useForm({ place: "1000" });
  const breaking = useStep((caller, signed) => breakSignature(caller, signed, form.values.place), [signing]);
  const rewriting = useStep(changeMessage, [signing]);
  const cutting = useStep(cutSignature, [signing]);
  return (
    <>
      <TamperStep
        step={breaking}
        title="Break one bit of the signature"
        action="Break and verify"
        fields={<NumberField label="Byte of the signature" {...form.bind("place")} />}
        claim={claim}
        says={({ change }) =>
          `With one bit of byte ${formatNumber(change.index)} changed, neither side finds it valid.`
        }
      >
        <p>Every bit of a signature matters. Choose any byte; counting begins at 0.</p>
      </TamperStep>
      <TamperStep
        step={rewriting}
        title="Or change the message"
        action="Change and verify"
        claim="the signature over the changed message"
        says={() => "The signature is unchanged, but it does not match this message."}
      >
        <p>This step changes the last letter of the message.</p>
      </TamperStep>
      <RefusedStep step={cutting} title="Cut the signature short" action="Cut and verify">
        <p>
          An invalid signature is an answer. Bytes that cannot be a signature are an error of the caller. The
          server refuses the call with a reason for programs.
        </p>
      </RefusedStep>
    </>
  );
}
