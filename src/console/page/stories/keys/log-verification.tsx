/** The server verifies its whole audit log, and the browser the checkpoint that the server signed. */
import { KmsService } from "#gen/kms/kms_service_pb.ts";
import { planCall } from "../../calls.ts";
import { reportBrowser, reportServer } from "../../checks.ts";
import { Checks } from "../../parts/checks.tsx";
import { Facts } from "../../parts/facts.tsx";
import { Step, useStep } from "../../step.tsx";
import { formatNumber } from "../../values.ts";
import { verifyLog } from "./steps.ts";

export function LogVerification() {
  const proving = useStep(verifyLog);
  return (
    <Step
      step={proving}
      title="Verify the whole log"
      action="Verify the log"
      plan={planCall(KmsService.method.verifyAuditLog, {})}
      outcome={({ valid, entries }) =>
        `The server read ${formatNumber(entries)} entries and finds the log ${valid ? "unchanged" : "changed"}.`
      }
      result={({ valid, head, checkpoint, isCheckpointSigned }) => (
        <>
          <Facts
            facts={{
              "Hash of the newest entry": <code>{head}</code>,
              "Signed checkpoint": checkpoint
                ? `covers the log up to entry ${formatNumber(checkpoint.sequence)}`
                : "none yet",
            }}
          />
          <Checks
            checks={[
              reportServer("every hash and every link", valid),
              ...(checkpoint ? [reportBrowser("the signature of the checkpoint", isCheckpointSigned)] : []),
            ]}
          />
        </>
      )}
    >
      <p>
        From time to time, the server signs the state of the log. With a stored checkpoint, anyone can detect
        later whether the log was rewritten. On a server with users, this step needs the role auditor.
      </p>
    </Step>
  );
}
