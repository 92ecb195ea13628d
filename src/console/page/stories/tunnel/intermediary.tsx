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
        title="An attacker in the middle swaps the keys"
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
            <Bytes
              label="Your public key, which she intercepted"
              value={yours.publicKey}
              publicKeyOf="ML-KEM-1024"
            />
            <Bytes
              label="Her public key, which the gateway got"
              value={hers.publicKey}
              publicKeyOf="ML-KEM-1024"
            />
            <Bytes label="Her key with the gateway" value={withGateway} />
            <Bytes label="Her key with you" value={withYou} />
          </>
        )}
      >
        <p>
          Mallory controls the connection. She registers her own public key instead of yours, decapsulates the
          gateway's ciphertext, and sends you her own ciphertext. ML-KEM alone cannot detect this: it does not
          identify the other side. This page acts as Mallory, with real calls to the gateway.
        </p>
      </Step>
      <Step
        step={catching}
        title="The attack is detected"
        action="Check what she sends you"
        outcome={({ passedOn, rewritten, resigned }) =>
          sayExpected(
            ![passedOn, rewritten, resigned].some(isTrusted),
            "Your browser uses the key in none of her attempts.",
            "One of her handshakes passes",
          )
        }
        result={(found) => (
          <>
            <h3>She forwards the gateway's transcript</h3>
            <Facts
              facts={{
                "The key's hash in it": <code>{found.hashInTranscript}</code>,
                "The hash of your key": <code>{found.hashOfYours}</code>,
              }}
            />
            <Checks checks={reportHandshake(found.passedOn)} />
            <h3>She writes a transcript for your key, with the gateway's signature</h3>
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
              The key confirmation is valid each time, because Mallory and your browser have the same key. It
              proves that both sides agree, but not who the other side is. The signature over the transcript
              proves that, with an identity that you know in advance.
            </p>
          </>
        )}
      >
        <p>
          The gateway signed a transcript with the hash of Mallory's key. She can only send a transcript that
          does not match your key, or a signature that is not the gateway's.
        </p>
      </Step>
    </>
  );
}

function reportSignature(isSigned: boolean): Check {
  return reportServer("the gateway's signature over the transcript", isSigned);
}
