/** A composite signature: two in one, which can neither lose a half nor be taken apart. */
import { useState } from "preact/hooks";
import { DappService, type DualSignResponse } from "#gen/dapp/dapp_service_pb.ts";
import { Bytes } from "../../parts/bytes-view.tsx";
import { Checks } from "../../parts/checks.tsx";
import { Choice } from "../../parts/fields.tsx";
import { requireResult, Step, type StepState, useStep } from "../../step.tsx";
import { flipBit, formatBytes } from "../../values.ts";
import { splitComposite, takeMldsaKey, verifyComposite } from "./dual.ts";
import {
  algorithm,
  areBoth,
  BrokenHalfResult,
  halfChecks,
  halves,
  sayBroken,
  toPair,
  verifyPair,
} from "./halves.tsx";

const { dualVerify } = DappService.method;

/** What the step before it gave. */
export interface CompositeProps {
  readonly signing: StepState<{ readonly data: Uint8Array<ArrayBuffer>; readonly signed: DualSignResponse }>;
}

export function Composite({ signing }: CompositeProps) {
  const [half, setHalf] = useState<string>(halves[1]);

  const composing = useStep(
    async ({ call }) => {
      const { data, signed } = requireResult(signing);
      const { compositeSignature, compositePublicKey } = signed;
      return {
        signature: compositeSignature,
        publicKey: compositePublicKey,
        server: await call(dualVerify, { data, compositeSignature, compositePublicKey }),
        browser: await verifyComposite(compositeSignature, data, compositePublicKey),
      };
    },
    [signing],
  );
  const breakingComposite = useStep(
    async ({ call }) => {
      const { data, signed } = requireResult(signing);
      const { compositeSignature: before, compositePublicKey } = signed;
      // The ML-DSA half begins the signature, the ECDSA half ends it.
      const index = half === "ECDSA" ? before.length - 1 : 0;
      const after = flipBit(before, index);
      return {
        half,
        before,
        after,
        index,
        server: await call(dualVerify, { data, compositeSignature: after, compositePublicKey }),
        browser: await verifyComposite(after, data, compositePublicKey),
      };
    },
    [signing],
  );
  const stripping = useStep(
    async ({ call }) => {
      const { data, signed } = requireResult(signing);
      const stripped = {
        ...toPair(data, signed),
        mldsaSignature: splitComposite(signed.compositeSignature).mldsa.slice(),
        mldsaPublicKey: takeMldsaKey(signed.compositePublicKey).slice(),
      };
      return { server: await call(dualVerify, stripped), browser: await verifyPair(stripped) };
    },
    [signing],
  );

  return (
    <>
      <Step
        step={composing}
        title="Verify the composite"
        action="Verify"
        outcome={({ signature, server, browser }) =>
          areBoth(server) && areBoth(browser)
            ? `One signature of ${formatBytes(signature.length)}: both sides find both halves valid.`
            : "The sides do not find both halves valid, which should not be."
        }
        result={({ signature, publicKey, server, browser }) => (
          <>
            <Bytes label="Composite signature" value={signature} />
            <Bytes label="Composite public key" value={publicKey} />
            <Checks checks={halfChecks(server, browser)} />
          </>
        )}
      >
        <p>
          The composite id-MLDSA65-ECDSA-P256-SHA512 is one signature with one key. Both halves sign a prefix,
          the name of the composite, and SHA-512 of the message. Your browser puts these bytes together by
          itself.
        </p>
      </Step>
      <Step
        step={breakingComposite}
        title="Break one half of the composite"
        action="Break and verify"
        outcome={({ half: broken, server, browser }) => sayBroken(broken, server, browser)}
        result={(broken) => <BrokenHalfResult {...broken} />}
      >
        <p>The ML-DSA half begins the signature, the ECDSA half ends it.</p>
        <div class="fields">
          <Choice label="Half of the composite to break" value={half} onChange={setHalf} options={halves} />
        </div>
      </Step>
      <Step
        step={stripping}
        title="Take the composite apart"
        action="Strip and verify"
        outcome={({ server, browser }) =>
          server.mldsaValid || browser.mldsaValid
            ? "One side takes the half for a signature of its own, which should not be."
            : `Neither side takes the half for an ${algorithm} signature of the message.`
        }
        result={({ server, browser }) => <Checks checks={halfChecks(server, browser)} />}
      >
        <p>
          Who takes the {algorithm} half out of a composite and shows it as a signature by itself fails: what
          it signed begins with the name of the composite. Here it stands beside the ECDSA signature from
          before, which is valid.
        </p>
      </Step>
    </>
  );
}
