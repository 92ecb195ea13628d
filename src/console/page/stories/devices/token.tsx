/** The token that a device gets for its answer, taken apart. */
import { reportBrowser, reportEqual } from "../../checks.ts";
import { Checks } from "../../parts/checks.tsx";
import { Evidence } from "../../parts/diagrams/evidence.tsx";
import { TokenView } from "../../parts/token-view.tsx";
import { Step } from "../../step.tsx";
import { formatBytes, formatNumber } from "../../values.ts";
import { titles } from "./sequence.ts";
import type { Devices } from "./use-devices.ts";

export function DeviceToken({ step }: { readonly step: Devices["reading"] }) {
  return (
    <Step
      step={step}
      title={titles.reading}
      action="Read and verify"
      outcome={({ token, parts }) =>
        `The token has ${formatNumber(token.length)} characters, for ${String(parts.payload.sub)}.`
      }
      result={({ token, parts, isSubject, isSigned }) => (
        <>
          <Evidence label="The token, decoded">
            <TokenView token={token} parts={parts} label={`Signature, ${parts.header.alg}`} />
          </Evidence>
          <Checks
            checks={[
              reportEqual("the subject of the token, and the device", isSubject),
              ...(isSigned === undefined
                ? []
                : [reportBrowser("the token's signature, with the published key", isSigned)]),
            ]}
          />
          <p class="hint">It adds {formatBytes(token.length)} to each call that the device makes.</p>
        </>
      )}
    >
      <p>
        The token contains the device ID, the time of expiry, and its use for devices. Its bearer may only
        send readings. The server signs it with ML-DSA-65, and your browser verifies the signature with the
        published keys.
      </p>
    </Step>
  );
}
