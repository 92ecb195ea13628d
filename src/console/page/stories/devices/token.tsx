/** The token that a device gets for its answer, taken apart. */
import { TokenService } from "#gen/pqc/token_service_pb.ts";
import { readToken, verifyToken } from "../../jwt.ts";
import { Bytes } from "../../parts/bytes-view.tsx";
import { type Check, Checks } from "../../parts/checks.tsx";
import { settings } from "../../settings.ts";
import { requireResult, Step, type StepState, useStep } from "../../step.tsx";
import { formatBytes, formatNumber, shorten } from "../../values.ts";

const { getJwks } = TokenService.method;

/** What the steps before it gave. */
export interface DeviceTokenProps {
  readonly registering: StepState<{ readonly deviceId: string }>;
  readonly authenticating: StepState<{ readonly token: string }>;
}

export function DeviceToken({ registering, authenticating }: DeviceTokenProps) {
  const reading = useStep(
    async ({ call }) => {
      const { deviceId } = requireResult(registering);
      const { token } = requireResult(authenticating);
      const parts = readToken(token);
      const checks: Check[] = [nameCheck(parts.payload.sub, deviceId)];
      // The keys are published by a service that need not run beside this one.
      if (settings.services.has(TokenService.typeName)) {
        const { keys } = await call(getJwks, {}, { token: null });
        const key = keys.find(({ kid }) => kid === parts.header.kid);
        const holds = key !== undefined && (await verifyToken(parts, key));
        checks.push({ by: "browser", claim: "the token's signature, with the published key", holds });
      }
      return { token, parts, checks };
    },
    [registering, authenticating],
  );
  return (
    <Step
      step={reading}
      title="Take its token apart"
      action="Read and verify"
      outcome={({ token, parts }) =>
        `The token has ${formatNumber(token.length)} characters, for ${String(parts.payload.sub)}.`
      }
      result={({ token, parts, checks }) => (
        <>
          <p class="token">{shorten(token, 160)}</p>
          <h3>Header</h3>
          <pre class="code">{JSON.stringify(parts.header, undefined, 2)}</pre>
          <h3>Payload</h3>
          <pre class="code">{JSON.stringify(parts.payload, undefined, 2)}</pre>
          <Bytes label={`Signature, ${parts.header.alg}`} value={parts.signature} />
          <Checks checks={checks} />
          <p class="hint">It adds {formatBytes(token.length)} to each call that the device makes.</p>
        </>
      )}
    >
      <p>
        The token says which device it is, until when, and that it is for devices: its bearer may send
        readings and do nothing else. The server signs it with ML-DSA-65, and your browser checks that with
        the published keys.
      </p>
    </Step>
  );
}

function nameCheck(subject: unknown, deviceId: string): Check {
  const holds = subject === deviceId;
  return {
    by: "browser",
    claim: "the subject of the token, and the device",
    holds,
    found: holds ? "equal" : "different",
  };
}
