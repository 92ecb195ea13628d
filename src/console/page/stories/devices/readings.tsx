/** What a device measures: signed, counted, changed on the way, and sent again. */
import { useState } from "preact/hooks";
import { IotService } from "#gen/iot/iot_service_pb.ts";
import { loadSigner } from "../../algorithms.ts";
import { ByteChange, Bytes } from "../../parts/bytes-view.tsx";
import { bothSides, Checks } from "../../parts/checks.tsx";
import { TextField } from "../../parts/fields.tsx";
import type { SigningKey } from "../../signing-key.ts";
import { requireResult, Step, type StepState, useStep } from "../../step.tsx";
import { flipBit, formatBytes, formatNumber, toUtf8 } from "../../values.ts";
import { numberedReadingContext } from "./contexts.ts";

const { sendTelemetry } = IotService.method;
const claim = "the device's signature over sequence and reading";

/** What the steps before it gave. */
export interface ReadingsProps {
  readonly registering: StepState<{ readonly deviceId: string; readonly device: SigningKey }>;
  readonly authenticating: StepState<{ readonly token: string }>;
}

export function Readings({ registering, authenticating }: ReadingsProps) {
  const [text, setText] = useState('{"celsius": 21.5}');
  const [lastSequence, setLastSequence] = useState(0);

  const sending = useStep(
    async ({ call }) => {
      const { deviceId, device } = requireResult(registering);
      const { token } = requireResult(authenticating);
      const sequence = lastSequence + 1;
      setLastSequence(sequence);
      const telemetry = toUtf8(text);
      const signed = signedBytes(sequence, telemetry);
      const reading = {
        deviceId,
        telemetry,
        sequence,
        signature: device.sign(signed, numberedReadingContext),
      };
      const { verified, reason } = await call(sendTelemetry, reading, { token });
      return { reading, signed, verified, reason, validHere: await isSigned(device, reading) };
    },
    [registering, authenticating],
  );
  const altering = useStep(
    async ({ call }) => {
      const { device } = requireResult(registering);
      const { token } = requireResult(authenticating);
      const { reading: sent } = requireResult(sending);
      const index = Math.floor(sent.telemetry.length / 2);
      const reading = { ...sent, telemetry: flipBit(sent.telemetry, index) };
      const { verified, reason } = await call(sendTelemetry, reading, { token });
      const validHere = await isSigned(device, reading);
      return { before: sent.telemetry, after: reading.telemetry, index, verified, reason, validHere };
    },
    [registering, authenticating, sending],
  );
  const repeating = useStep(
    async ({ call }) => {
      const { device } = requireResult(registering);
      const { token } = requireResult(authenticating);
      const { reading } = requireResult(sending);
      const { verified, reason } = await call(sendTelemetry, reading, { token });
      return { sequence: reading.sequence, verified, reason, validHere: await isSigned(device, reading) };
    },
    [registering, authenticating, sending],
  );

  return (
    <>
      <Step
        step={sending}
        title="It sends a reading"
        action="Sign and send"
        outcome={({ reading, verified, reason }) =>
          verified
            ? `The server takes reading ${formatNumber(reading.sequence)}: ${formatBytes(reading.telemetry.length)}, with a signature of ${formatBytes(reading.signature.length)}.`
            : `The server does not take it: ${reason}.`
        }
        result={({ reading, signed, verified, validHere }) => (
          <>
            <Bytes label="What is signed: sequence and reading" value={signed} />
            <Bytes label="Signature" value={reading.signature} />
            <Checks checks={bothSides(claim, verified, validHere)} />
          </>
        )}
      >
        <p>
          Each reading has a number, one higher than the last. The device signs the number's 8 bytes and then
          the reading, so neither can be changed without the other. The first reading also tells the server
          that this device numbers all of them. The call goes with the device's own token.
        </p>
        <div class="fields">
          <TextField label="Reading" value={text} onChange={setText} />
        </div>
      </Step>
      <Step
        step={altering}
        title="Somebody changes the reading on the way"
        action="Change and send"
        outcome={({ verified, reason }) =>
          verified ? "The server took it, which should not be." : `The server does not take it: ${reason}.`
        }
        result={({ before, after, index, verified, validHere }) => (
          <>
            <ByteChange before={before} after={after} index={index} />
            <Checks checks={bothSides(claim, verified, validHere)} />
          </>
        )}
      >
        <p>One bit of the reading is another one; number and signature are as they were.</p>
      </Step>
      <Step
        step={repeating}
        title="Somebody sends an old reading again"
        action="Send it again"
        outcome={({ sequence, verified, reason }) =>
          verified
            ? "The server took it twice, which should not be."
            : `The server does not take reading ${formatNumber(sequence)} again: ${reason}.`
        }
        result={({ verified, validHere }) => (
          <Checks
            checks={[
              { by: "browser", claim, holds: validHere },
              {
                by: "server",
                claim: "the sequence, against the last one that it took",
                holds: verified,
                found: verified ? "new" : "old",
              },
            ]}
          />
        )}
      >
        <p>
          Now nothing was changed, so the signature holds. Without the number, yesterday's calm reading could
          hide today's fire.
        </p>
      </Step>
    </>
  );
}

interface Reading {
  readonly telemetry: Uint8Array;
  readonly sequence: number;
  readonly signature: Uint8Array;
}

async function isSigned({ algorithm, publicKey }: SigningKey, reading: Reading): Promise<boolean> {
  const signer = await loadSigner(algorithm);
  const signed = signedBytes(reading.sequence, reading.telemetry);
  return signer.verify(reading.signature, signed, publicKey, numberedReadingContext);
}

/** What a device signs of a reading: 8 bytes of its sequence, big-endian, and then what was measured. */
function signedBytes(sequence: number, telemetry: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(8 + telemetry.length);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(sequence));
  bytes.set(telemetry, 8);
  return bytes;
}
