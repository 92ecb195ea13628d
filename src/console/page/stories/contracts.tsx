/** A contract's code, signed; and a message signed twice over, with an algorithm of today and one of tomorrow. */
import { useState } from "preact/hooks";
import { DappService } from "#gen/dapp/dapp_service_pb.ts";
import { browserLibrary } from "../algorithms.ts";
import { planCall } from "../calls.ts";
import { Bytes } from "../parts/bytes-view.tsx";
import { Checks } from "../parts/checks.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { Choice, TextField } from "../parts/fields.tsx";
import { SizeChart } from "../parts/size-chart.tsx";
import { requireResult, Step, useStep } from "../step.tsx";
import { Story } from "../story.tsx";
import { flipBit, formatBytes, toUtf8 } from "../values.ts";
import { Code } from "./contracts/code.tsx";
import { Composite } from "./contracts/composite.tsx";
import { curveLibrary, mirrorEcdsa } from "./contracts/dual.ts";
import {
  algorithm,
  areBoth,
  BrokenHalfResult,
  halfChecks,
  halves,
  sayBroken,
  toPair,
  verifyPair,
} from "./contracts/halves.tsx";

const { dualSign, dualVerify } = DappService.method;

export function Page() {
  const [text, setText] = useState("Release the escrow");
  const [half, setHalf] = useState<string>(halves[0]);

  const signing = useStep(async ({ call }) => {
    const data = toUtf8(text);
    return { data, signed: await call(dualSign, { data }) };
  });
  const verifying = useStep(
    async ({ call }) => {
      const { data, signed } = requireResult(signing);
      const pair = toPair(data, signed);
      return { server: await call(dualVerify, pair), browser: await verifyPair(pair) };
    },
    [signing],
  );
  const breaking = useStep(
    async ({ call }) => {
      const { data, signed } = requireResult(signing);
      const pair = toPair(data, signed);
      const name = half === "ECDSA" ? "ecdsaSignature" : "mldsaSignature";
      const before = pair[name];
      const index = before.length - 1;
      const after = flipBit(before, index);
      const broken = { ...pair, [name]: after };
      return {
        half,
        before,
        after,
        index,
        server: await call(dualVerify, broken),
        browser: await verifyPair(broken),
      };
    },
    [signing],
  );
  const mirroring = useStep(
    async ({ call }) => {
      const { data, signed } = requireResult(signing);
      const mirrored = await mirrorEcdsa(signed.ecdsaSignature);
      const pair = { ...toPair(data, signed), ecdsaSignature: mirrored };
      return {
        original: signed.ecdsaSignature,
        mirrored,
        server: await call(dualVerify, pair),
        browser: await verifyPair(pair),
      };
    },
    [signing],
  );
  const cutting = useStep(
    ({ callRefused }) => {
      const { data, signed } = requireResult(signing);
      const pair = toPair(data, signed);
      return callRefused(dualVerify, { ...pair, mldsaSignature: pair.mldsaSignature.slice(1) });
    },
    [signing],
  );

  return (
    <Story
      title="Contracts, signed twice"
      lead="Code is hashed and signed, so that all see the same contract. And a message is signed with two algorithms at once: ECDSA, which has been tried for decades, and ML-DSA, which is made to withstand a quantum computer. Who wants to forge must break both."
    >
      <Code />
      <Step
        step={signing}
        title="Sign a message twice"
        action="Sign"
        plan={planCall(dualSign, { data: toUtf8(text) })}
        outcome={({ signed }) =>
          `ECDSA made ${formatBytes(signed.ecdsaSignature.length)}, ${algorithm} ${formatBytes(signed.mldsaSignature.length)}.`
        }
        result={({ data, signed }) => (
          <>
            <Bytes label="Message" value={data} />
            <Bytes label="ECDSA signature" value={signed.ecdsaSignature} />
            <Bytes label={`${algorithm} signature`} value={signed.mldsaSignature} />
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
        )}
      >
        <p>
          The same bytes, with secp256r1 and SHA-256, and with {algorithm}: each with a key pair made for this
          call. Beside two signatures, the server makes a composite, which is one.
        </p>
        <div class="fields">
          <TextField label="Message" value={text} onChange={setText} />
        </div>
      </Step>
      <Step
        step={verifying}
        title="Verify each apart, on both sides"
        action="Verify"
        outcome={({ server, browser }) =>
          areBoth(server) && areBoth(browser)
            ? "Both sides find both signatures valid."
            : "The sides do not find both valid, which should not be."
        }
        result={({ server, browser }) => (
          <>
            <Checks checks={halfChecks(server, browser)} />
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
        outcome={({ half: broken, server, browser }) => sayBroken(broken, server, browser)}
        result={(broken) => <BrokenHalfResult {...broken} />}
      >
        <p>
          The last byte of one signature changes by one bit. The other half stays valid, but that is not
          enough: should one algorithm fall some day, the other one still holds.
        </p>
        <div class="fields">
          <Choice label="Half to break" value={half} onChange={setHalf} options={halves} />
        </div>
      </Step>
      <Step
        step={mirroring}
        title="Another ECDSA signature, without the key"
        action="Mirror and verify"
        outcome={({ server, browser }) =>
          areBoth(server) && areBoth(browser)
            ? "The signature has other bytes, and both sides find it valid."
            : "The mirrored signature is not valid for both sides, which should not be."
        }
        result={({ original, mirrored, server, browser }) => (
          <>
            <Bytes label="As the server made it: r and s" value={original} />
            <Bytes label="Mirrored: r and n − s" value={mirrored} />
            <Checks checks={halfChecks(server, browser)} />
          </>
        )}
      >
        <p>
          Anybody can turn s into n − s, where n is the order of the curve. That forges no message, but the
          bytes of an ECDSA signature name nothing: do not use them, or their hash, as an identifier.
        </p>
      </Step>
      <Composite signing={signing} />
      <Step
        step={cutting}
        title="Cut a signature short"
        action="Cut and verify"
        outcome={({ reason }) => `The server refuses the call: ${reason}.`}
        result={(failure) => <FailureNote failure={failure} isExpected />}
      >
        <p>Bytes that can be no signature are a mistake of the caller, not a signature that is not valid.</p>
      </Step>
    </Story>
  );
}
