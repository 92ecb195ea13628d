/** A new session key, after which both ends refuse packets under the old one. */
import { reportBrowser, reportServer } from "../../checks.ts";
import { Bytes } from "../../parts/bytes-view.tsx";
import { Checks } from "../../parts/checks.tsx";
import { FailureNote } from "../../parts/failure-note.tsx";
import { Step, type StepState, useStep } from "../../step.tsx";
import { formatNumber } from "../../values.ts";
import { reportHandshake, sayTrusted } from "./handshake.ts";
import { type EndHolder, type Gateway, type Registered, takeNewKey } from "./steps.ts";

interface RekeyProps {
  readonly meeting: StepState<Gateway>;
  readonly registering: StepState<Registered>;
  readonly shaking: StepState<unknown>;
  readonly end: EndHolder;
}

export function Rekey({ meeting, registering, shaking, end }: RekeyProps) {
  const rekeying = useStep(
    (caller, gateway, registered) => takeNewKey(caller, end, gateway, registered),
    [meeting, registering, shaking],
  );
  return (
    <Step
      step={rekeying}
      title="Replace the key"
      action="Rekey"
      outcome={({ keyNumber, findings, refusal }) =>
        sayTrusted(
          findings,
          `Key ${formatNumber(keyNumber)} is in use. A packet under the previous key is refused: ${refusal.reason}.`,
        )
      }
      result={(rekeyed) => (
        <>
          <Bytes label="Ciphertext, sent" value={rekeyed.ciphertext} />
          <Bytes label="New shared secret" value={rekeyed.sharedSecret} />
          <Checks checks={reportHandshake(rekeyed.findings)} />
          <h3>A packet under the old key</h3>
          <FailureNote failure={rekeyed.refusal} isExpected />
          <Checks
            checks={[
              reportBrowser(
                "the gateway's next packet, with the old key",
                ...nameOpening(rekeyed.opensWithOld),
              ),
            ]}
          />
          <h3>Packets under the new key</h3>
          <Checks
            checks={[
              reportBrowser(
                "the gateway's next packet, with the new key",
                ...nameOpening(rekeyed.opensWithNew),
              ),
              reportServer("your next packet, with the new key", ...nameOpening(rekeyed.isReadByGateway)),
            ]}
          />
        </>
      )}
    >
      <p>
        A key that is used for long is worth more to a thief. This time your browser encapsulates, to the key
        that the gateway showed in the first step; the gateway signs the new transcript. Then a packet is
        sealed under the old key, and one each way under the new one.
      </p>
    </Step>
  );
}

function nameOpening(opens: boolean): [boolean, string] {
  return [opens, opens ? "opens" : "does not open"];
}
