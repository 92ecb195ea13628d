/** What a valid signature does not prove: that it is from the owner, and that it is new. */
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
            "The thief's signature is valid, but by the key of another address. Whoever looks at “valid” alone is robbed.",
            "The thief was taken for the owner",
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
          A thief makes a wallet, signs the same transaction, and sends their own public key with it. That is
          a true signature. What gives it away is the address.
        </p>
      </Step>
      <Step
        step={replaying}
        title="Present it twice"
        action="Replay"
        outcome={({ valid, validAgain, accepted: [first, second] }) =>
          sayExpected(
            valid && validAgain && first === true && second === false,
            "Both sides would find it valid for ever. Your browser's list takes it once, and not again.",
            "The replay was not seen",
          )
        }
        result={({ valid, validAgain, transactionHash, accepted, isSameSignature, again }) => (
          <>
            <Bytes label="A second signature of the same transaction" value={again} />
            <Facts
              facts={{
                "The two signatures": isSameSignature
                  ? "equal"
                  : "different, as ML-DSA draws random bytes for each",
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
          A signature says who and what, not when or how often. Those who execute transactions keep a list of
          the ones done, by their own hash, because each signature of one transaction has other bytes. A
          number in the transaction tells two wanted ones apart.
        </p>
      </Step>
    </>
  );
}

function nameOwner(isOwner: boolean): string {
  return isOwner ? "the wallet's" : "another";
}
