/** The token that a device gets for its answer, taken apart. */
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { reportBrowser, reportEqual } from "../../checks.ts";
import { Checks } from "../../parts/checks.tsx";
import { TokenView } from "../../parts/token-view.tsx";
import { settings } from "../../settings.ts";
import { Step, type StepState, useStep } from "../../step.tsx";
import { formatBytes, formatNumber } from "../../values.ts";
import { type Authenticated, type Registered, readDeviceToken } from "./steps.ts";

interface DeviceTokenProps {
  readonly registering: StepState<Registered>;
  readonly authenticating: StepState<Authenticated>;
}

export function DeviceToken({ registering, authenticating }: DeviceTokenProps) {
  const reading = useStep(
    (caller, registered, authenticated) =>
      readDeviceToken(caller, registered, authenticated, settings.services.has(TokenService.typeName)),
    [registering, authenticating],
  );
  return (
    <Step
      step={reading}
      title="Decode its token"
      action="Read and verify"
      outcome={({ token, parts }) =>
        `The token has ${formatNumber(token.length)} characters, for ${String(parts.payload.sub)}.`
      }
      result={({ token, parts, isSubject, isSigned }) => (
        <>
          <TokenView token={token} parts={parts} label={`Signature, ${parts.header.alg}`} />
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
