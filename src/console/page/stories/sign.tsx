/** A signature: made by the server, checked on both sides, broken by one byte. */
import { useState } from "preact/hooks";
import { PqcService } from "#gen/pqc/pqc_service_pb.ts";
import { browserLibrary, loadSigner } from "../algorithms.ts";
import { planCall } from "../calls.ts";
import { classicalSignatures, classicalSigningKeys } from "../classical.ts";
import { ByteChange, Bytes } from "../parts/bytes-view.tsx";
import { bothSides, Checks } from "../parts/checks.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { Choice, NumberField, TextField } from "../parts/fields.tsx";
import { SizeChart } from "../parts/size-chart.tsx";
import { requireResult, Step, useStep } from "../step.tsx";
import { Story } from "../story.tsx";
import { flipBit, formatBytes, formatMs, formatNumber, toUtf8 } from "../values.ts";

const algorithms = ["ML-DSA-44", "ML-DSA-65", "ML-DSA-87", "SLH-DSA-SHA2-128s", "SLH-DSA-SHA2-128f"];
const { signData, verifySignature } = PqcService.method;
const claim = "the signature over the message";

export function Page() {
  const [text, setText] = useState("Pay 100 to Ada");
  const [algorithm, setAlgorithm] = useState("ML-DSA-65");
  const [place, setPlace] = useState("1000");

  const signing = useStep(async ({ call }) => {
    const data = toUtf8(text);
    const { signature, publicKey } = await call(signData, { data, algorithm });
    return { data, algorithm, signature, publicKey };
  });
  const verifying = useStep(
    async ({ call }) => {
      const signed = requireResult(signing);
      const { valid } = await call(verifySignature, signed);
      const signer = await loadSigner(signed.algorithm);
      const startedAt = performance.now();
      const validHere = signer.verify(signed.signature, signed.data, signed.publicKey);
      return { valid, validHere, ms: performance.now() - startedAt };
    },
    [signing],
  );
  const breaking = useStep(
    async ({ call }) => {
      const signed = requireResult(signing);
      const index = Math.min(Math.max(0, Math.trunc(Number(place)) || 0), signed.signature.length - 1);
      const signature = flipBit(signed.signature, index);
      const { valid } = await call(verifySignature, { ...signed, signature });
      const signer = await loadSigner(signed.algorithm);
      const validHere = signer.verify(signature, signed.data, signed.publicKey);
      return { valid, validHere, index, before: signed.signature, after: signature };
    },
    [signing],
  );
  const rewriting = useStep(
    async ({ call }) => {
      const signed = requireResult(signing);
      const data = flipBit(signed.data, signed.data.length - 1);
      const { valid } = await call(verifySignature, { ...signed, data });
      const signer = await loadSigner(signed.algorithm);
      return {
        valid,
        validHere: signer.verify(signed.signature, data, signed.publicKey),
        index: data.length - 1,
        before: signed.data,
        after: data,
      };
    },
    [signing],
  );
  const cutting = useStep(
    ({ callRefused }) => {
      const signed = requireResult(signing);
      return callRefused(verifySignature, { ...signed, signature: signed.signature.slice(0, -1) });
    },
    [signing],
  );

  return (
    <Story
      title="Sign and verify"
      lead="The server makes a key pair for this one request, signs with its secret half, and sends the signature and the public half. Anyone who has these two can check that the message is as it was signed."
    >
      <Step
        step={signing}
        title="Sign a message"
        action="Sign"
        plan={planCall(signData, { data: toUtf8(text), algorithm })}
        outcome={({ signature, publicKey }) =>
          `The signature has ${formatBytes(signature.length)}, the public key ${formatBytes(publicKey.length)}.`
        }
        result={({ data, algorithm: name, signature, publicKey }) => (
          <>
            <Bytes label="Message" value={data} />
            <Bytes label="Signature" value={signature} />
            <Bytes label="Public key" value={publicKey} />
            <div class="pair">
              <SizeChart
                title="Signature, bytes"
                rows={[...classicalSignatures, { label: name, bytes: signature.length }]}
              />
              <SizeChart
                title="Public key, bytes"
                rows={[...classicalSigningKeys, { label: name, bytes: publicKey.length }]}
              />
            </div>
          </>
        )}
      >
        <p>
          ML-DSA rests on lattices and is fast. SLH-DSA rests on hashes alone: its keys are tiny, its
          signatures large and slow to make.
        </p>
        <div class="fields">
          <TextField label="Message" value={text} onChange={setText} />
          <Choice label="Algorithm" value={algorithm} onChange={setAlgorithm} options={algorithms} />
        </div>
      </Step>
      <Step
        step={verifying}
        title="Verify it, on both sides"
        action="Verify"
        outcome={({ valid, validHere }) =>
          valid && validHere
            ? "Both sides find the signature valid."
            : "The sides do not both find it valid, which should not be."
        }
        result={({ valid, validHere, ms }) => (
          <>
            <Checks checks={bothSides(claim, valid, validHere)} />
            <p class="hint">
              Your browser took {formatMs(ms)}, with {browserLibrary}.
            </p>
          </>
        )}
      >
        <p>
          A server that lies could call anything valid. So your browser checks too, with a library of its own,
          and asks nobody.
        </p>
      </Step>
      <Step
        step={breaking}
        title="Break one bit of the signature"
        action="Break and verify"
        outcome={({ valid, validHere, index }) =>
          valid || validHere
            ? "One side still finds it valid, which should not be."
            : `With one bit of byte ${formatNumber(index)} turned, neither side finds it valid.`
        }
        result={({ valid, validHere, index, before, after }) => (
          <>
            <ByteChange before={before} after={after} index={index} />
            <Checks checks={bothSides(claim, valid, validHere)} />
          </>
        )}
      >
        <p>
          It does not matter which one: every bit of a signature is needed. Choose a byte; counting begins at
          0.
        </p>
        <div class="fields">
          <NumberField label="Byte of the signature" value={place} onChange={setPlace} />
        </div>
      </Step>
      <Step
        step={rewriting}
        title="Or change the message"
        action="Change and verify"
        outcome={({ valid, validHere }) =>
          valid || validHere
            ? "One side still finds it valid, which should not be."
            : "The signature is untouched, but it is not one of this message."
        }
        result={({ valid, validHere, index, before, after }) => (
          <>
            <ByteChange before={before} after={after} index={index} />
            <Checks checks={bothSides("the signature over the changed message", valid, validHere)} />
          </>
        )}
      >
        <p>Here the last letter of the message is another one.</p>
      </Step>
      <Step
        step={cutting}
        title="Cut the signature short"
        action="Cut and verify"
        outcome={({ reason }) => `The server refuses the call: ${reason}.`}
        result={(failure) => <FailureNote failure={failure} isExpected />}
      >
        <p>
          A signature that is not valid is an answer. Bytes that can be no signature at all are a mistake of
          the caller, and the server refuses the call with a reason that a program can act on.
        </p>
      </Step>
    </Story>
  );
}
