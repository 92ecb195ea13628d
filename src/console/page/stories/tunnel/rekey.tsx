/** A new session key, after which both ends refuse packets under the old one. */
import { reportBrowser, reportServer } from "../../checks.ts";
import { Bytes } from "../../parts/bytes-view.tsx";
import { Checks } from "../../parts/checks.tsx";
import { Evidence } from "../../parts/diagrams/evidence.tsx";
import { FailureNote } from "../../parts/failure-note.tsx";
import { Step } from "../../step.tsx";
import { formatNumber } from "../../values.ts";
import { reportHandshake, sayTrusted } from "./handshake.ts";
import { titles } from "./sequence.ts";
import type { Tunnel } from "./use-tunnel.ts";

export function Rekey({ step }: { readonly step: Tunnel["rekeying"] }) {
  return (
    <Step
      step={step}
      title={titles.rekeying}
      action="Rekey"
      outcome={({ keyNumber, findings, refusal }) =>
        sayTrusted(
          findings,
          `Key ${formatNumber(keyNumber)} is in use. A packet under the previous key is refused: ${refusal.reason}.`,
        )
      }
      result={(rekeyed) => (
        <>
          <Evidence label="Ciphertext and secret">
            <Bytes label="Ciphertext, sent" value={rekeyed.ciphertext} />
            <Bytes label="New shared secret" value={rekeyed.sharedSecret} />
          </Evidence>
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
