/** What a device measures: signed, numbered, changed on the way, and sent again. */
import { useRef } from "preact/hooks";
import { reportBoth, reportBrowser, reportServer, sayExpected } from "../../checks.ts";
import { useForm } from "../../form.ts";
import { ByteChange, Bytes } from "../../parts/bytes-view.tsx";
import { Checks } from "../../parts/checks.tsx";
import { TextField } from "../../parts/fields.tsx";
import { Step, type StepState, useStep } from "../../step.tsx";
import { formatBytes, formatNumber } from "../../values.ts";
import {
  type Authenticated,
  type Registered,
  repeatReading,
  sendChangedReading,
  sendReading,
} from "./steps.ts";

const claim = "the device's signature over sequence and reading";

interface ReadingsProps {
  readonly registering: StepState<Registered>;
  readonly authenticating: StepState<Authenticated>;
}

export function Readings({ registering, authenticating }: ReadingsProps) {
  const form = useForm({ text: '{"celsius": 21.5}' });
  const lastSequence = useRef(0);
  const sending = useStep(
    (caller, registered, authenticated) => {
      lastSequence.current += 1;
      const reading = { ...form.values, sequence: lastSequence.current };
      return sendReading(caller, registered, authenticated, reading);
    },
    [registering, authenticating],
  );
  const altering = useStep(sendChangedReading, [registering, authenticating, sending]);
  const repeating = useStep(repeatReading, [registering, authenticating, sending]);

  return (
    <>
      <Step
        step={sending}
        title="The device sends a reading"
        action="Sign and send"
        fields={<TextField label="Reading" {...form.bind("text")} />}
        outcome={({ reading, verdicts, reason }) =>
          verdicts.server
            ? `The server accepts reading ${formatNumber(reading.sequence)}: ${formatBytes(reading.telemetry.length)}, and a signature of ${formatBytes(reading.signature.length)}.`
            : `The server rejects it: ${reason}.`
        }
        result={({ reading, signed, verdicts }) => (
          <>
            <Bytes label="Signed bytes: sequence and reading" value={signed} />
            <Bytes label="Signature" value={reading.signature} />
            <Checks checks={reportBoth(claim, verdicts)} />
          </>
        )}
      >
        <p>
          Each reading has a number, one higher than the last. The device signs the 8 bytes of the number and
          then the reading, so neither can be changed. The first reading also decides that all readings of
          this device have numbers. The call uses the device's own token.
        </p>
      </Step>
      <Step
        step={altering}
        title="An attacker changes the reading in transit"
        action="Change and send"
        outcome={({ verdicts, reason }) =>
          sayExpected(!verdicts.server, `The server rejects it: ${reason}.`, "The server accepted it")
        }
        result={({ change, verdicts }) => (
          <>
            <ByteChange {...change} />
            <Checks checks={reportBoth(claim, verdicts)} />
          </>
        )}
      >
        <p>One bit of the reading is another one; number and signature are as they were.</p>
      </Step>
      <Step
        step={repeating}
        title="An attacker repeats an old reading"
        action="Send it again"
        outcome={({ sequence, verdicts, reason }) =>
          sayExpected(
            !verdicts.server,
            `The server rejects reading ${formatNumber(sequence)} again: ${reason}.`,
            "The server accepted it twice",
          )
        }
        result={({ verdicts: { browser, server } }) => (
          <Checks
            checks={[
              reportBrowser(claim, browser),
              reportServer(
                "the sequence, compared with the last accepted one",
                server,
                server ? "new" : "old",
              ),
            ]}
          />
        )}
      >
        <p>
          Nothing was changed, so the signature is valid. Without the number, an old harmless reading could
          hide a new alarm.
        </p>
      </Step>
    </>
  );
}
