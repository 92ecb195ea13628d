/** An intermediary, who swaps a key and is caught by the gateway's signature. */
import { type Check, reportBrowser, reportServer, sayExpected } from "../../checks.ts";
import { Bytes } from "../../parts/bytes-view.tsx";
import { Checks } from "../../parts/checks.tsx";
import { Evidence } from "../../parts/diagrams/evidence.tsx";
import { Facts } from "../../parts/facts.tsx";
import { Step } from "../../step.tsx";
import { isTrusted, reportHandshake } from "./handshake.ts";
import { titles } from "./sequence.ts";
import type { Tunnel } from "./use-tunnel.ts";

export function Intermediary({ swapping, catching }: Pick<Tunnel, "swapping" | "catching">) {
  return (
    <>
      <Step
        step={swapping}
        title={titles.swapping}
        action="Swap the keys"
        outcome={({ readsGateway }) =>
          sayExpected(
            readsGateway,
            "She shares one key with the gateway and another with you, and could read everything.",
            "She does not share a key with the gateway",
          )
        }
        result={({ yours, hers, withGateway, withYou }) => (
          <Evidence label="Public keys and secrets">
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
          </Evidence>
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
        title={titles.catching}
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
            <Evidence label="She forwards the gateway's transcript">
              <Facts
                facts={{
                  "The key's hash in it": <code>{found.hashInTranscript}</code>,
                  "The hash of your key": <code>{found.hashOfYours}</code>,
                }}
              />
              <Checks checks={reportHandshake(found.passedOn)} />
            </Evidence>
            <Evidence label="She writes a transcript for your key, with the gateway's signature">
              <Checks
                checks={[...reportHandshake(found.rewritten), reportSignature(found.isRewrittenSigned)]}
              />
            </Evidence>
            <Evidence label="She signs it herself">
              <Checks
                checks={[
                  ...reportHandshake(found.resigned),
                  reportSignature(found.isResignedSigned),
                  reportBrowser("the signature, with a key of Mallory's", found.isSignedByHer),
                ]}
              />
            </Evidence>
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
