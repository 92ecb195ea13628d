/** A device: it registers, authenticates, sends readings, and accepts firmware only from its vendor. */
import { reportBoth, reportEqual, reportNoSecret, reportServer, sayExpected } from "../../checks.ts";
import { classicalSigningKeys } from "../../classical.ts";
import { useForm } from "../../form.ts";
import { Bytes } from "../../parts/bytes-view.tsx";
import { Checks } from "../../parts/checks.tsx";
import { TextField } from "../../parts/fields.tsx";
import { SignatureSizes, SizeChart } from "../../parts/size-chart.tsx";
import { Step, type StepState, useStep } from "../../step.tsx";
import { Story } from "../../story.tsx";
import { formatBytes } from "../../values.ts";
import { Firmware } from "./firmware.tsx";
import { Readings } from "./readings.tsx";
import {
  type Authenticated,
  answerChallenge,
  impersonateDevice,
  makeKeys,
  type Registered,
  registerWithKey,
  repeatAnswer,
} from "./steps.ts";
import { DeviceToken } from "./token.tsx";

const claim = "the device's signature over the challenge";

export function Page() {
  const form = useForm({ name: "Thermometer, hall 4" });
  const making = useStep(makeKeys);
  const registering = useStep((caller, keys) => registerWithKey(caller, keys, form.values.name), [making]);
  const authenticating = useStep((caller, registered) => answerChallenge(caller, registered), [registering]);

  return (
    <Story
      title="Devices"
      lead="A device is small and far away, and lives for twenty years. It keeps one secret key of its own, signs with ML-DSA-44, and is known by its public key alone. Here your browser plays the device and the vendor of its firmware."
    >
      <Step
        step={making}
        title="The device and its vendor make their keys"
        action="Make two key pairs"
        outcome={({ device, vendor }) =>
          `The device's public key has ${formatBytes(device.publicKey.length)}, the vendor's ${formatBytes(vendor.publicKey.length)}.`
        }
        result={({ device, vendor }) => (
          <>
            <Bytes label="Public key of the device, ML-DSA-44" value={device.publicKey} />
            <Bytes label="Public key of the vendor, ML-DSA-87" value={vendor.publicKey} />
            <SizeChart
              title="Public key, bytes"
              rows={[
                ...classicalSigningKeys,
                { label: device.algorithm, bytes: device.publicKey.length },
                { label: vendor.algorithm, bytes: vendor.publicKey.length },
              ]}
            />
          </>
        )}
      >
        <p>
          ML-DSA-44 has the smallest signatures of the three, which suits a slow line. Firmware must be
          trusted for as long as the device lives, so its vendor takes the strongest, ML-DSA-87. The secret
          keys stay in this page. No call is made.
        </p>
      </Step>
      <Step
        step={registering}
        title="Register the device"
        action="Register"
        fields={<TextField label="Name of the device" {...form.bind("name")} />}
        outcome={({ deviceId, registrationStatus, isSameKey }) =>
          sayExpected(
            isSameKey,
            `${registrationStatus}: it is called ${deviceId}.`,
            "The server registered another key",
          )
        }
        result={({ isSameKey, hasNoSecret }) => (
          <Checks
            checks={[
              reportEqual("the key that the server registered, and the device's own", isSameKey),
              reportNoSecret(hasNoSecret),
            ]}
          />
        )}
      >
        <p>
          The server learns the device's public key, and which vendor may sign firmware for it. It never sees
          a secret. The device asks for signing contexts: it signs challenges and readings under different
          names, so that a signature for one is never valid for the other.
        </p>
      </Step>
      <Step
        step={authenticating}
        title="It proves who it is"
        action="Ask for a challenge and sign it"
        outcome={({ verdicts, reason }) =>
          verdicts.server
            ? "The server knows the device, and gives it a token."
            : `The server does not know the device: ${reason}.`
        }
        result={({ challenge, signature, verdicts }) => (
          <>
            <Bytes label="Challenge" value={challenge} />
            <Bytes label="Signature" value={signature} />
            <Checks checks={reportBoth(claim, verdicts)} />
            <SignatureSizes algorithm="ML-DSA-44" bytes={signature.length} />
          </>
        )}
      >
        <p>
          The challenge is 32 bytes that nobody can guess, for this device alone, once, within 60 seconds.
          Only the holder of the secret key can sign it. There is no password that could leak.
        </p>
      </Step>
      <Imposture registering={registering} authenticating={authenticating} />
      <DeviceToken registering={registering} authenticating={authenticating} />
      <Readings registering={registering} authenticating={authenticating} />
      <Firmware registering={registering} />
    </Story>
  );
}

interface ImpostureProps {
  readonly registering: StepState<Registered>;
  readonly authenticating: StepState<Authenticated>;
}

/** Answers to challenges that do not come from the device. */
function Imposture({ registering, authenticating }: ImpostureProps) {
  const repeating = useStep(repeatAnswer, [registering, authenticating]);
  const pretending = useStep(impersonateDevice, [registering]);
  return (
    <>
      <Step
        step={repeating}
        title="The same answer again"
        action="Send it again"
        outcome={({ authenticated, reason }) =>
          sayExpected(!authenticated, `Not authenticated: ${reason}.`, "The server took it twice")
        }
        result={({ authenticated }) => (
          <Checks
            checks={[
              reportServer(
                "the challenge, used a second time",
                authenticated,
                authenticated ? "taken" : "refused",
              ),
            ]}
          />
        )}
      >
        <p>
          Somebody listened to the line and sends what they heard. The signature is genuine, but a challenge
          is used up by its first answer.
        </p>
      </Step>
      <Step
        step={pretending}
        title="Another device takes its name"
        action="Sign with another key"
        outcome={({ verdicts, reason }) =>
          sayExpected(!verdicts.server, `Not authenticated: ${reason}.`, "The server took it")
        }
        result={({ verdicts }) => <Checks checks={reportBoth(claim, verdicts)} />}
      >
        <p>
          It asks for a challenge under the name of yours, and signs with a key of its own. A wrong answer
          uses the challenge up too, so nobody can go on trying.
        </p>
      </Step>
    </>
  );
}
