/** An intermediary, who swaps a key and is caught by the gateway's signature. */
import { type Check, reportBrowser, reportServer, sayExpected } from "../../checks.ts";
import { Bytes } from "../../parts/bytes-view.tsx";
import { Checks } from "../../parts/checks.tsx";
import { Facts } from "../../parts/facts.tsx";
import { Step, type StepState, useStep } from "../../step.tsx";
import { isTrusted, reportHandshake } from "./handshake.ts";
import { catchIntermediary, swapKeys } from "./intermediary-steps.ts";
import type { Gateway } from "./steps.ts";

export function Intermediary({ meeting }: { readonly meeting: StepState<Gateway> }) {
  const swapping = useStep(swapKeys, [meeting]);
  const catching = useStep(catchIntermediary, [meeting, swapping]);
  return (
    <>
      <Step
        step={swapping}
        title="Somebody in between swaps the keys"
        action="Swap the keys"
        outcome={({ readsGateway }) =>
          sayExpected(
            readsGateway,
            "She shares one key with the gateway and another with you, and could read everything.",
            "She does not share a key with the gateway",
          )
        }
        result={({ yours, hers, withGateway, withYou }) => (
          <>
            <Bytes label="Your public key, which she kept" value={yours.publicKey} />
            <Bytes label="Her public key, which the gateway got" value={hers.publicKey} />
            <Bytes label="Her key with the gateway" value={withGateway} />
            <Bytes label="Her key with you" value={withYou} />
          </>
        )}
      >
        <p>
          Mallory sits on the line. She registers her own public key in place of yours, opens what the gateway
          sends her, and sends you a ciphertext of her own. ML-KEM alone cannot tell you: it keeps a secret
          with somebody, and does not say with whom. This page plays her, with real calls to the gateway.
        </p>
      </Step>
      <Step
        step={catching}
        title="She is caught"
        action="Check what she sends you"
        outcome={({ passedOn, rewritten, resigned }) =>
          sayExpected(
            ![passedOn, rewritten, resigned].some(isTrusted),
            "Whatever she tries, your browser does not use the key.",
            "One of her handshakes passes",
          )
        }
        result={(found) => (
          <>
            <h3>She passes on the gateway's transcript</h3>
            <Facts
              facts={{
                "The key's hash in it": <code>{found.hashInTranscript}</code>,
                "The hash of your key": <code>{found.hashOfYours}</code>,
              }}
            />
            <Checks checks={reportHandshake(found.passedOn)} />
            <h3>She writes one for your key, and keeps the gateway's signature</h3>
            <Checks
              checks={[...reportHandshake(found.rewritten), reportSignature(found.isRewrittenSigned)]}
            />
            <h3>She signs it herself</h3>
            <Checks
              checks={[
                ...reportHandshake(found.resigned),
                reportSignature(found.isResignedSigned),
                reportBrowser("the signature, with a key of Mallory's", found.isSignedByHer),
              ]}
            />
            <p class="note">
              The key confirmation is right each time: Mallory does have the key that your browser has. It
              tells that both sides agree, and not who the other side is. That is what the signature over the
              transcript is for, with an identity that you knew before.
            </p>
          </>
        )}
      >
        <p>
          The gateway signed a transcript with the hash of the key that it got, which was Mallory's. So she
          has to choose: a transcript that is not yours, or a signature that is not the gateway's.
        </p>
      </Step>
    </>
  );
}

function reportSignature(isSigned: boolean): Check {
  return reportServer("the gateway's signature over the transcript", isSigned);
}
