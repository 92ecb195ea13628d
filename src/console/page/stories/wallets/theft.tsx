/** Two limits of a valid signature: it may not be from the owner, and may not be new. */
import { areBothValid, reportBoth, reportBrowser, reportServer, sayExpected } from "../../checks.ts";
import { Bytes } from "../../parts/bytes-view.tsx";
import { Checks } from "../../parts/checks.tsx";
import { Facts } from "../../parts/facts.tsx";
import { Step, type StepState, useStep } from "../../step.tsx";
import { type Created, replayTransaction, type Signed, signAsThief } from "./steps.ts";

interface TheftProps {
  readonly creating: StepState<Created>;
  readonly signing: StepState<Signed>;
}

export function Theft({ creating, signing }: TheftProps) {
  const swapping = useStep(signAsThief, [creating, signing]);
  const replaying = useStep(replayTransaction, [creating, signing]);
  return (
    <>
      <Step
        step={swapping}
        title="Swap the key"
        action="Sign as a thief"
        outcome={({ verdicts, isOwner }) =>
          sayExpected(
            areBothValid(verdicts) && !isOwner.browser,
            "The thief's signature is valid, but for the key of another address. “Valid” alone does not protect you.",
            "The thief was accepted as the owner",
          )
        }
        result={({ verdicts, computed, expected, isOwner }) => (
          <>
            <Facts
              facts={{
                "Address of the wallet": <code>{expected}</code>,
                "Address of the key that signed": <code>{computed}</code>,
              }}
            />
            <Checks
              checks={[
                ...reportBoth("the signature, with the key that came with it", verdicts),
                reportServer(
                  "the address that it names for this key",
                  isOwner.server,
                  nameOwner(isOwner.server),
                ),
                reportBrowser("the address of this key", isOwner.browser, nameOwner(isOwner.browser)),
              ]}
            />
          </>
        )}
      >
        <p>
          A thief creates a wallet, signs the same transaction, and sends it with the thief's public key. The
          signature is genuine. Only the address reveals the thief.
        </p>
      </Step>
      <Step
        step={replaying}
        title="Use it twice"
        action="Replay"
        outcome={({ valid, validAgain, accepted: [first, second] }) =>
          sayExpected(
            valid && validAgain && first === true && second === false,
            "Both sides always find it valid. Your browser's list accepts it only once.",
            "The replay was not detected",
          )
        }
        result={({ valid, validAgain, transactionHash, accepted, isSameSignature, again }) => (
          <>
            <Bytes label="A second signature of the same transaction" value={again} />
            <Facts
              facts={{
                "The two signatures": isSameSignature
                  ? "equal"
                  : "different, because ML-DSA draws random bytes for each signature",
                "Hash of the transaction": <code>{transactionHash}</code>,
              }}
            />
            <Checks
              checks={[
                reportServer("the first signature, presented again", valid),
                reportServer("the second signature", validAgain),
                ...accepted.map((isNew, at) =>
                  reportBrowser(
                    `the transaction, presented for the ${at === 0 ? "first" : "second"} time`,
                    isNew,
                    isNew ? "taken" : "seen before",
                  ),
                ),
              ]}
            />
          </>
        )}
      >
        <p>
          A signature proves the signer and the content, but not the time or the number of uses. Systems that
          execute transactions store a list of executed transaction hashes. They do not use the signature,
          because two signatures of one transaction differ. A number in the transaction distinguishes two
          intended payments.
        </p>
      </Step>
    </>
  );
}

function nameOwner(isOwner: boolean): string {
  return isOwner ? "the wallet's" : "another";
}
