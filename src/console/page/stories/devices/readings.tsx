/** Readings of a device: signed, numbered, changed in transit, and sent again. */
import { reportBoth, reportBrowser, reportServer, sayExpected } from "../../checks.ts";
import { ByteChange, Bytes } from "../../parts/bytes-view.tsx";
import { Checks } from "../../parts/checks.tsx";
import { Evidence } from "../../parts/diagrams/evidence.tsx";
import { TextField } from "../../parts/fields.tsx";
import { Step } from "../../step.tsx";
import { formatBytes, formatNumber } from "../../values.ts";
import { titles } from "./sequence.ts";
import type { Devices } from "./use-devices.ts";

const claim = "the device's signature over sequence and reading";

type ReadingsProps = Pick<Devices, "form" | "measuring" | "alteringReading" | "repeatingReading">;

export function Readings({ form, measuring, alteringReading, repeatingReading }: ReadingsProps) {
  return (
    <>
      <Step
        step={measuring}
        title={titles.measuring}
        action="Sign and send"
        fields={<TextField label="Reading" {...form.bind("text")} />}
        outcome={({ reading, verdicts, reason }) =>
          verdicts.server
            ? `The server accepts reading ${formatNumber(reading.sequence)}: ${formatBytes(reading.telemetry.length)}, and a signature of ${formatBytes(reading.signature.length)}.`
            : `The server rejects it: ${reason}.`
        }
        result={({ reading, signed, verdicts }) => (
          <>
            <Evidence label="Signed bytes and signature">
              <Bytes label="Signed bytes: sequence and reading" value={signed} />
              <Bytes label="Signature" value={reading.signature} />
            </Evidence>
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
        step={alteringReading}
        title={titles.alteringReading}
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
        step={repeatingReading}
        title={titles.repeatingReading}
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
